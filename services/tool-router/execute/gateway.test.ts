import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { delay } from "#runtime/time/delay.ts";
import { entryOf, tool } from "../testing/tools.ts";
import { createAddressGuard } from "./address-guard.ts";
import { type Gateway, openGateway } from "./gateway.ts";

const seen: { method: string; url: string; headers: IncomingMessage["headers"]; body: string }[] = [];

const secret = (name: string) => `\${secret:${name}}`;

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = "", url = "", headers } = request;
  let body = "";
  for await (const chunk of request) body += chunk;
  seen.push({ method, url, headers, body });
  if (url.startsWith("/to/")) response.writeHead(302, { location: decodeURIComponent(url.slice(4)) }).end();
  else if (url === "/loop") response.writeHead(307, { location: "/loop" }).end();
  else if (url === "/fail") response.writeHead(503).end("x".repeat(10_000));
  else if (url === "/large") response.end("x".repeat(100_000));
  else if (url === "/reset") request.socket.resetAndDestroy();
  else if (url === "/done-then-away") response.writeHead(303, { location: "http://127.0.0.1:1/" }).end();
  else if (url === "/elsewhere") response.writeHead(307, { location: "http://127.0.0.1:1/" }).end();
  else if (url === "/slow") void delay(100).then(() => response.end("late"));
  else if (url === "/text") response.end("hello");
  else if (url !== "/silent")
    response.setHeader("content-type", "application/json").end('{"big": 12345678901234567890}');
}

describe("TOOL-3 gateway tools", () => {
  const server = createServer((request, response) => void answer(request, response));
  let port = 0;
  let gateway: Gateway;
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
    const guard = createAddressGuard([`127.0.0.1:${port}`]);
    gateway = openGateway({ guard, secrets: new Map([["KEY", "s3cret"]]), maxResponseBytes: 50_000 });
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    server.closeAllConnections();
    server.close();
  });

  async function call(
    url: string,
    more: { method?: string; headers?: Record<string, string> } = {},
    args = {},
    timeoutMs = 5_000,
    effect: Effect = Effect.PURE,
  ) {
    const execution = { url: url.startsWith("/") ? `http://127.0.0.1:${port}${url}` : url, ...more };
    const entry = entryOf(tool("web", { executionType: ExecutionType.GATEWAY, execution, effect }));
    const result = await gateway.execute(
      entry,
      args,
      { at: Date.now() + timeoutMs, timeoutMs },
      new AbortController().signal,
    );
    return result.outputJson;
  }

  test("send arguments as a JSON body, and pass the JSON of the response on byte for byte", async () => {
    expect(await call("/json", { headers: { "X-Key": `Bearer ${secret("KEY")}` } }, { a: 1 })).toBe(
      '{"big": 12345678901234567890}',
    );
    expect(seen.at(-1)).toMatchObject({ method: "POST", body: '{"a":1}', headers: { "x-key": "Bearer s3cret" } });
  });

  test("send arguments of GET as the query", async () => {
    await call("/json?fixed=1", { method: "GET" }, { q: "a b", list: [1, 2], deep: { x: 1 } });
    expect(seen.at(-1)).toMatchObject({
      method: "GET",
      url: "/json?fixed=1&q=a+b&list=1&list=2&deep=%7B%22x%22%3A1%7D",
      body: "",
    });
  });

  test("text is a JSON string, a bad status an error with a bounded part of the body", async () => {
    expect(await call("/text")).toBe('"hello"');
    expect(await call("/fail")).toBe(JSON.stringify({ error: `HTTP 503: ${"x".repeat(2_000)}` }));
    expect(await call("/large")).toMatch(/larger than 50000 bytes/);
  });

  test("time out after their own time, and name a missing secret", async () => {
    expect(await call("/silent", {}, {}, 50)).toBe('{"error":"Tool timed out after 50ms"}');
    expect(await call("/json", { headers: { a: secret("NONE") } })).toMatch(/TOOLBUS_SECRET_NONE/);
  });

  test("KIND-4 a time of 30 days is not over at once", async () => {
    expect(await call("/slow", {}, {}, 30 * 86_400_000)).toBe('"late"');
  });

  test("LOOP-14 what was sent, must not be repeated and has no answer, has an unknown outcome", async () => {
    const risky = (url: string) => call(url, {}, {}, 5_000, Effect.AT_MOST_ONCE);
    expect(await risky("/reset")).toMatch(/outcome_unknown: .*web/);
    expect(await risky("/large")).toMatch(/outcome_unknown: .*larger than 50000 bytes/);
    expect(await risky("/done-then-away")).toMatch(/outcome_unknown: .*not a public one/);
    expect(await risky("/elsewhere")).toMatch(/"web\\" cannot be called: .*not a public one/);
    expect(await risky("http://127.0.0.1:1/")).toMatch(/cannot be called/);
    expect(await call("/reset")).toMatch(/cannot be called/);
  });

  test("follow redirects, judge each, and take no headers to another origin", async () => {
    expect(await call(`/to/${encodeURIComponent("/text")}`)).toBe('"hello"');
    expect(seen.at(-1)?.method).toBe("GET");
    expect(await call(`/to/${encodeURIComponent("http://127.0.0.1:1/")}`)).toMatch(/not a public one/);
    expect(await call(`/to/${encodeURIComponent("file:///etc/passwd")}`)).toMatch(/file: URLs are not called/);
    expect(await call("/loop")).toMatch(/more than 5 redirects/);
  });

  test.each([
    "http://localhost:1/",
    "http://2130706433:1/",
    "http://0177.0.0.1:1/",
    "http://0x7f.1:1/",
    "http://[::1]:1/",
    "http://[::ffff:127.0.0.1]:1/",
    "http://[64:ff9b::7f00:1]:1/",
    "http://169.254.169.254/latest/meta-data",
    "http://0.0.0.0:1/",
    "http://10.1.2.3/",
  ])("cannot be turned against the inside: %s", async (url) => {
    expect(await call(url)).toMatch(/is not a public one/);
  });
});

describe("the address guard", () => {
  const answers = [["93.184.216.34"], ["127.0.0.1"]];
  const guard = createAddressGuard(["10.1.0.0/16", "inside.example:8080"], async (host) => {
    const addresses =
      host === "rebinding.example" ? (answers.shift() ?? []) : [host === "both.example" ? "10.9.9.9" : "192.168.0.7"];
    return [...addresses, ...(host === "both.example" ? ["93.184.216.34"] : [])].map((address) => ({
      address,
      family: 4,
    }));
  });

  test("TOOL-3 gives the address that it has judged: a name that changes is judged again", async () => {
    expect(await guard.resolve("rebinding.example", 80)).toEqual([{ address: "93.184.216.34", family: 4 }]);
    await expect(guard.resolve("rebinding.example", 80)).rejects.toThrow(/127\.0\.0\.1 of rebinding\.example/);
  });

  test("one private address among public ones is enough to refuse", async () => {
    await expect(guard.resolve("both.example", 80)).rejects.toThrow(/10\.9\.9\.9/);
  });

  test("what the configuration allows is allowed, on its port", async () => {
    expect(await guard.resolve("inside.example", 8080)).toHaveLength(1);
    await expect(guard.resolve("inside.example", 80)).rejects.toThrow(/192\.168\.0\.7/);
    expect(guard.refusalOf("10.1.2.3", "10.1.2.3", 80)).toBeUndefined();
  });
});
