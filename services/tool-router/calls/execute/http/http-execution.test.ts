import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import { openTestHttpExecution, type TestCall } from "../../../testing/http-execution.ts";
import { openWebServer, type Respond, type WebServer } from "../../../testing/peers/web-server.ts";

const secret = (name: string) => `\${secret:${name}}`;
const left: string[] = [];

const respond: Respond = (request, response) => {
  const { url = "" } = request;
  response.on("close", () => response.writableEnded || left.push(url));
  if (url.startsWith("/to/")) response.writeHead(302, { location: decodeURIComponent(url.slice(4)) }).end();
  else if (url === "/loop") response.writeHead(307, { location: "/loop" }).end();
  else if (url === "/reset") request.socket.resetAndDestroy();
  else if (url === "/large") response.end("x".repeat(100_000));
  else if (url === "/done-then-away") response.writeHead(303, { location: "http://127.0.0.1:1/" }).end();
  else if (url === "/elsewhere") response.writeHead(307, { location: "http://127.0.0.1:1/" }).end();
  else if (url === "/slow") void delay(100).then(() => response.end("late"));
  else if (url === "/drips") response.write("drop");
  else if (url === "/text") response.end("hello");
  else if (url === "/told") response.writeHead(401).end(`no entry for ${request.headers["x-key"]}`);
  else if (!url.startsWith("/silent")) response.setHeader("x-kind", "json").end('{"big": 12345678901234567890}');
};

describe("TOOL-3 gateway tools", () => {
  const stack = new AsyncDisposableStack();
  let server: WebServer;
  let call: (url: string, call?: TestCall) => Promise<string>;
  beforeAll(async () => {
    server = stack.use(await openWebServer(respond));
    const base = `http://127.0.0.1:${server.port}`;
    const http = stack.use(openTestHttpExecution({ allow: [`127.0.0.1:${server.port}`] }));
    call = (url, more) => http.call(url.startsWith("/") ? base + url : url, more);
  });
  afterAll(() => stack.disposeAsync());

  test("send arguments as a JSON body and pass the JSON of the response on, both byte for byte", async () => {
    const headers = { "X-Key": `Bearer ${secret("KEY")}` };
    const argumentsJson = '{"id": 98765432109876543210}';
    expect(await call("/json", { headers, argumentsJson })).toBe('{"big": 12345678901234567890}');
    expect(server.seen.at(-1)).toMatchObject({
      method: "POST",
      body: argumentsJson,
      headers: { "x-key": "Bearer s3cret", "content-type": "application/json" },
    });
  });

  test("LOOP-14 tell the call's id as their idempotency key, which the tool's own header replaces", async () => {
    await call("/json");
    expect(server.seen.at(-1)?.headers).toMatchObject({ "idempotency-key": "call-1" });
    await call("/json", { headers: { "Idempotency-Key": "always the same" } });
    expect(server.seen.at(-1)).toMatchObject({
      headers: { "idempotency-key": "always the same" },
    });
  });

  const args = { q: "a b&c=d", list: [1, { x: 2 }], deep: { x: [1] }, none: null, empty: [], yes: true };
  const query = "/json?fixed=1&q=a+b%26c%3Dd&list=1&list=%7B%22x%22%3A2%7D&deep=%7B%22x%22%3A%5B1%5D%7D&yes=true";
  test.each([
    ["", "/json?fixed=1", JSON.stringify(args)],
    ["PUT", "/json?fixed=1", JSON.stringify(args)],
    ["PATCH", "/json?fixed=1", JSON.stringify(args)],
    ["GET", query, ""],
    ["HEAD", query, ""],
    ["DELETE", query, ""],
  ])("%s carries its arguments as the method's convention is", async (method, url, body) => {
    await call("/json?fixed=1", { method, args });
    expect(server.seen.at(-1)).toMatchObject({ method: method || "POST", url, body });
    expect("content-type" in server.seen.at(-1)!.headers).toBe(body !== "");
  });

  test("a number that no double holds goes into a query as it was written", async () => {
    const [id, price] = ["98765432109876543210", "0.12345678901234567890"];
    const argumentsJson = `{"id": ${id}, "ids": [${id}], "deep": {"price": ${price}}}`;
    await call("/json", { method: "GET", argumentsJson });
    const query = new URLSearchParams(server.seen.at(-1)!.url.split("?")[1]);
    expect(Object.fromEntries(query)).toEqual({ id, ids: id, deep: `{"price":${price}}` });
  });

  test("HEAD answers with status and headers", async () => {
    const answer: unknown = JSON.parse(await call("/json", { method: "HEAD" }));
    expect(answer).toMatchObject({ status: 200, headers: { "x-kind": "json" } });
  });

  test("calls of one origin share connections", async () => {
    const before = server.connections;
    for (let n = 0; n < 20; n++) await call("/json");
    expect(server.connections - before).toBeLessThanOrEqual(1);
  });

  test("time out after their own time, and name a missing secret", async () => {
    expect(await call("/silent", { timeoutMs: 50 })).toBe('{"error":"Tool timed out after 50ms"}');
    expect(await call("/drips", { timeoutMs: 50 })).toBe('{"error":"Tool timed out after 50ms"}');
    expect(await call("/json", { headers: { a: secret("NONE") } })).toMatch(/TOOLBUS_SECRET_NONE/);
  });

  test("KIND-4 a time of 30 days is not over at once", async () => {
    expect(await call("/slow", { timeoutMs: 30 * 86_400_000 })).toBe('"late"');
  });

  test("LOOP-15 canceling reaches the socket, before the response and in the middle of it", async () => {
    for (const url of ["/silent-then-left", "/drips"]) {
      const controller = new AbortController();
      left.length = 0;
      const calling = call(url, { signal: controller.signal });
      await until(() => server.seen.at(-1)?.url === url);
      controller.abort(new Error("enough"));
      expect(await calling).toBe('{"error":"the call was canceled"}');
      await until(() => left.includes(url));
    }
  });

  test("LOOP-14 what was sent, must not be repeated and has no answer, has an unknown outcome", async () => {
    const risky = (url: string) => call(url, { effect: Effect.AT_MOST_ONCE });
    expect(await risky("/reset")).toMatch(/outcome_unknown: .*web/);
    expect(await risky("/large")).toMatch(/outcome_unknown: .*larger than 50000 bytes/);
    expect(await risky("/done-then-away")).toMatch(/outcome_unknown: .*not a public one/);
    expect(await risky("/elsewhere")).toMatch(/"web\\" cannot be called: .*not a public one/);
    expect(await risky("http://127.0.0.1:1/")).toMatch(/cannot be called/);
    expect(await call("/reset")).toMatch(/cannot be called/);
  });

  test("SEC-7 do not follow a redirect to another origin with a secret, and strike secrets out of what a server answers as an error", async () => {
    const headers = { "x-key": secret("KEY") };
    const away = `/to/${encodeURIComponent(`http://localhost:${server.port}/text`)}`;
    const seen = server.seen.length;
    expect(await call(away, { headers })).toMatch(/redirects to http:\/\/localhost:\d+, which a request with secrets/);
    expect(server.seen.length).toBe(seen + 1);
    expect(await call("/told", { headers })).toBe('{"error":"HTTP 401: no entry for [secret KEY]"}');
  });

  test("follow redirects of their own origin with all their headers, as far as five", async () => {
    const headers = { "x-key": secret("KEY") };
    expect(await call(`/to/${encodeURIComponent("/text")}`, { headers })).toBe('"hello"');
    expect(server.seen.at(-1)).toMatchObject({ method: "GET", body: "", headers: { "x-key": "s3cret" } });
    expect(await call("/loop")).toMatch(/more than 5 redirects/);
  });
});
