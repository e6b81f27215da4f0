import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestHttpExecution } from "../../../testing/http-execution.ts";
import { insideHosts } from "../../../testing/peers/inside-hosts.ts";
import { openWebServer, type WebServer } from "../../../testing/peers/web-server.ts";

/*
 * TOOL-3: nothing that a URL, a name server or a web server says leads inside.
 *
 * Two servers on one port stand for the world: 127.0.0.2 is outside, since the configuration allows it (and 127.0.0.3, where
 * nobody is), and everything else of loopback is inside. A trick has worked if the inside sees a connection, or the outside sees a secret
 * that was not meant for it. PORT is their port.
 */

interface Trick {
  what: string;
  /** Called with GET, the secret in the header X-Key. */
  url: string;
  /** What the outside answers: where it sends the call, by path. */
  redirects?: Record<string, string>;
  /** What names resolve to, one list after the other; the last one stands. */
  names?: Record<string, string[][]>;
  calls?: number;
  says: RegExp;
}

const refused = /is not a public one/;
/** Below localhost, whether a name has an address is the resolver's affair. */
const refusedOrUnknown = /is not a public one|ENOTFOUND|EAI_AGAIN/;
const unfit = /URLs are not called/;
const invalid = /Invalid URL/;
const user = /holds a user or a password/;
const at = (host: string) => `http://${host}:PORT/secret`;

const written: Trick[] = insideHosts.map(([what, host]) => ({
  what,
  url: at(host),
  says: /localhost\.$|\.localhost$/.test(host) ? refusedOrUnknown : refused,
}));

const spelled: Trick[] = [
  { what: "a user that looks like a host", url: "http://outside.example@127.0.0.1:PORT/", says: user },
  { what: "user and password", url: "http://outside.example:80@127.0.0.1:PORT/", says: user },
  { what: "a backslash before the user's sign", url: "http://127.0.0.1:PORT\\@outside.example/", says: refused },
  { what: "no slashes", url: "http:127.0.0.1:PORT", says: refused },
  { what: "backslashes", url: "http:\\\\127.0.0.1:PORT\\", says: refused },
  { what: "three slashes", url: "http:///127.0.0.1:PORT/", says: refused },
  { what: "a tab in the name", url: "http://local\thost:PORT/", says: refused },
  { what: "a link-local zone", url: "http://[fe80::1%25lo]:PORT/", says: invalid },
  { what: "a NUL", url: "http://127.0.0.1%00.outside.example:PORT/", says: invalid },
  { what: "numbers that are too large", url: "http://256.256.256.256:PORT/", says: invalid },
  { what: "a file", url: "file:///etc/passwd", says: unfit },
  { what: "a socket's path", url: "unix:/var/run/docker.sock", says: unfit },
  { what: "HTTP over a socket's path", url: "http+unix://%2Fvar%2Frun%2Fdocker.sock/info", says: unfit },
  { what: "gopher", url: "gopher://127.0.0.1:PORT/_SET%20a", says: unfit },
  { what: "ftp", url: "ftp://127.0.0.1:PORT/", says: unfit },
  { what: "data", url: "data:text/plain,secret", says: unfit },
  { what: "a WebSocket", url: "ws://127.0.0.1:PORT/", says: unfit },
];

const outside = "http://127.0.0.2:PORT";
const redirecting = (what: string, to: string, says: RegExp): Trick => ({
  what: `a redirect: ${what}`,
  url: `${outside}/a`,
  redirects: { "/a": to },
  says,
});

const redirects: Trick[] = [
  redirecting("inside", at("127.0.0.1"), refused),
  redirecting("to a decimal host", at("2130706433"), refused),
  redirecting("without scheme", "//127.0.0.1:PORT/", refused),
  redirecting("without scheme, by backslashes", "\\\\127.0.0.1:PORT\\", refused),
  redirecting("to another scheme of the same host", "https://127.0.0.1:PORT/", refused),
  redirecting("to a file", "file:///etc/passwd", unfit),
  redirecting("to a socket's path", "unix:///var/run/docker.sock", unfit),
  redirecting("to gopher", "gopher://127.0.0.1:PORT/", unfit),
  redirecting("with a user", "http://a@127.0.0.2:PORT/b", user),
  redirecting("to no URL", "http://[fe80::1%25lo]/", /leads to no URL/),
  {
    what: "a redirect: inside after several outside",
    url: `${outside}/a`,
    redirects: { "/a": "/b", "/b": "/c", "/c": at("127.0.0.1") },
    says: refused,
  },
  {
    what: "a redirect: a loop",
    url: `${outside}/a`,
    redirects: { "/a": "/b", "/b": "/a" },
    says: /more than 5 redirects/,
  },
];

const named: Trick[] = [
  { what: "a name that leads inside", url: at("in.example"), names: { "in.example": [["127.0.0.1"]] }, says: refused },
  {
    what: "a name with one address inside among others",
    url: at("both.example"),
    names: { "both.example": [["127.0.0.2", "127.0.0.1"]] },
    says: refused,
  },
  {
    what: "a name with a mapped address",
    url: at("mapped.example"),
    names: { "mapped.example": [["::ffff:127.0.0.1"]] },
    says: refused,
  },
  {
    what: "a name with a link-local address in a zone",
    url: at("zone.example"),
    names: { "zone.example": [["fe80::1%lo"]] },
    says: refused,
  },
  {
    what: "a name whose first address takes no connection: the next one was judged, too",
    url: "http://two.example:PORT/ok",
    names: { "two.example": [["127.0.0.3", "127.0.0.2"]] },
    says: /^"outside"$/,
  },
  {
    what: "a name without an address",
    url: at("none.example"),
    names: { "none.example": [[]] },
    says: /has no address/,
  },
  {
    what: "rebinding between two lookups of one call: there is one, and its address is the one that is connected to",
    url: `http://rebinding.example:PORT/ok`,
    names: { "rebinding.example": [["127.0.0.2"], ["127.0.0.1"]] },
    says: /^"outside"$/,
  },
  {
    what: "rebinding between two calls: a pooled connection leads where it was judged to lead, another is judged again",
    url: `http://pooled.example:PORT/ok`,
    names: { "pooled.example": [["127.0.0.2"], ["127.0.0.1"]] },
    calls: 5,
    says: /^"outside"$|is not a public one/,
  },
  {
    what: "rebinding after the pooled connection is gone: the next one is judged again",
    url: `http://closed.example:PORT/close`,
    names: { "closed.example": [["127.0.0.2"], ["127.0.0.1"]] },
    calls: 2,
    says: refused,
  },
  {
    what: "a redirect to a name that leads inside",
    url: `${outside}/a`,
    redirects: { "/a": at("in.example") },
    names: { "in.example": [["127.0.0.1"]] },
    says: refused,
  },
];

describe("TOOL-3 cannot be turned against the inside", () => {
  const stack = new AsyncDisposableStack();
  let inside: WebServer;
  let trick: Trick;
  beforeAll(async () => {
    inside = stack.use(await openWebServer((_, response) => response.end("inside")));
    stack.use(
      await openWebServer(
        ({ url = "" }, response) => {
          const location = trick.redirects?.[url]?.replaceAll("PORT", String(inside.port));
          if (url === "/close") response.setHeader("connection", "close");
          if (location === undefined) response.end("outside");
          else response.writeHead(302, { location }).end();
        },
        "127.0.0.2",
        inside.port,
      ),
    );
  });
  afterAll(() => stack.disposeAsync());

  test.each([...written, ...spelled, ...redirects, ...named])("by $what", async (row) => {
    trick = row;
    const left = new Map(Object.entries(row.names ?? {}).map(([name, answers]) => [name, [...answers]]));
    const resolveWith = async (host: string) => {
      const answers = left.get(host);
      if (answers === undefined) throw new Error(`nobody knows ${host}`);
      const addresses = answers.length > 1 ? answers.shift()! : answers[0]!;
      return addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    };
    await using http = openTestHttpExecution({ allow: ["127.0.0.2/31"], ...(row.names && { resolveWith }) });
    const url = row.url.replace("PORT", String(inside.port));
    // A request with a secret would follow no redirect out of its origin: that is another wall.
    const options = { method: "GET", headers: { "x-key": row.redirects ? "key" : `\${secret:KEY}` } };
    let answer = "";
    for (let n = 0; n < (row.calls ?? 1); n++) answer = await http.call(url, options);
    expect(answer).toMatch(row.says);
    expect(inside.connections).toBe(0);
  });
});

describe("TOOL-3 a redirect to another origin loses the headers with their secrets, and they do not come back", () => {
  test.each([
    ["another port", "GET", 302, "GET", ""],
    ["another port, repeated", "POST", 307, "POST", '{"a":1}'],
    ["another port, turned into GET", "POST", 303, "GET", ""],
  ])("%s: %s %d", async (_, method, status, arrivesAs, body) => {
    await using stack = new AsyncDisposableStack();
    const second: WebServer = stack.use(
      await openWebServer(({ url }, response) => {
        if (url === "/back") response.writeHead(status, { location: `http://127.0.0.1:${first.port}/home` }).end();
        else response.end("there");
      }),
    );
    const first: WebServer = stack.use(
      await openWebServer(({ url = "" }, response) => {
        if (url.startsWith("/home")) return response.end("home");
        const location = url.startsWith("/away") ? "/there" : "/back";
        return response.writeHead(status, { location: `http://127.0.0.1:${second.port}${location}` }).end();
      }),
    );
    const http = stack.use(openTestHttpExecution({ allow: ["127.0.0.1/32"] }));
    const headers = { "X-Key": "s3cret", Authorization: "Bearer s3cret", Cookie: "s=1" };
    const call = (path: string) =>
      http.call(`http://127.0.0.1:${first.port}${path}`, { method, headers, args: { a: 1 } });
    expect(await call("/away")).toBe('"there"');
    expect(await call("/round")).toBe('"home"');
    expect(first.seen[0]?.headers).toMatchObject({ "x-key": "s3cret", authorization: "Bearer s3cret", cookie: "s=1" });
    for (const arrived of [...second.seen, first.seen.at(-1)!]) {
      expect(JSON.stringify(arrived.headers)).not.toMatch(/s3cret|cookie/);
      expect(arrived).toMatchObject({ method: arrivesAs, body });
    }
  });
});

test("TOOL-3 what the configuration allows is allowed, on its port, and IPv6 is written in brackets", async () => {
  const server = await openWebServer((_, response) => response.end("inside"), "::1").catch(() => undefined);
  if (server === undefined) return; // this machine has no IPv6
  await using _ = server;
  await using http = openTestHttpExecution({ allow: [`[::1]:${server.port}`] });
  expect(await http.call(`http://[::1]:${server.port}/`)).toBe('"inside"');
  expect(await http.call(`http://[::1]:${server.port + 1}/`)).toMatch(refused);
});
