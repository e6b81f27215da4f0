// Requests that no client sends by itself are refused in words, and are no failure of the gateway.

import { once } from "node:events";
import { request } from "node:http";
import { json, text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createLoginPaths, type LoginPaths } from "../../plain/logins/logins.ts";
import { eventIdOfCall } from "../revisions/ids/event-ids.ts";
import { openTestDoor, postMessage, type TestDoor } from "./testing/door.ts";

const faults: unknown[] = [];
let door: TestDoor;

beforeAll(async () => {
  const logins = createLoginPaths({ publicUrl: new URL("https://toolbus.example/"), isOpen: true } as LoginPaths);
  door = await openTestDoor({
    before: [logins],
    onFault: (fault) => void faults.push(fault),
    agents: { listAgents: () => ({ agents: [{ agent: { name: "large" } }], nextPageToken: "more" }) },
    tools: {
      async *callTool({ argumentsJson }) {
        yield { event: { case: "result", value: { outputJson: JSON.stringify(`with ${argumentsJson}`) } } };
      },
    },
  });
});
afterAll(() => door[Symbol.asyncDispose]());

const callOf = (argumentsJson: string) => eventIdOfCall({ callId: "c", id: 1, name: "count", argumentsJson });
const resumed = (lastEventId: string) => ({ "mcp-session-id": "s1", "last-event-id": lastEventId });

it.each([
  ["a method that no page may send", "TRACE", "/mcp/clerk", {}, 405, /Method not allowed/],
  ["a host with a name and a password", "GET", "/mcp/clerk", { host: "a:b@127.0.0.1" }, 400, /Host names no host/],
  ["a place of no JSON", "GET", "/mcp/clerk", resumed(callOf("{")), 400, /Last-Event-ID is of no stream/],
  ["a place that says more", "GET", "/mcp/clerk", resumed(callOf('{},"x":{}')), 400, /Last-Event-ID is of no stream/],
  [
    "a place of many levels",
    "GET",
    "/mcp/clerk",
    resumed(callOf("[".repeat(1_000) + "]".repeat(1_000))),
    400,
    /no stream/,
  ],
  ["a client of HTTP+SSE", "GET", "/mcp/clerk", {}, 400, /POST initialize first, over streamable HTTP/],
  ["a path that is no address", "GET", "//", {}, 404, /nothing takes it/],
] as const)("SEC-5 %s is refused in words", async (_, method, path, headers, status, says) => {
  const { port } = new URL(door.url);
  const asking = request({ port, method, path, headers }).end();
  const [answer] = await once(asking, "response");
  expect([answer.statusCode, await text(answer)]).toEqual([status, expect.stringMatching(says)]);
  expect(faults).toEqual([]);
});

it.each([
  ["any type", { accept: "*/*" }],
  ["ranges of types", { accept: "application/*, text/*;q=0.5" }],
  ["types in capitals", { accept: "Application/JSON, Text/Event-Stream" }],
  ["no word on it", {}],
])("DOOR-1 a client that takes %s is answered", async (_, accepting) => {
  const [answer] = await posted(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }), accepting);
  expect([answer.statusCode, await json(answer)]).toEqual([200, { jsonrpc: "2.0", id: 1, result: {} }]);
});

it("DOOR-1 a client that takes no events is refused", async () => {
  const [answer] = await posted(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }), { accept: "application/*" });
  expect(answer.statusCode).toBe(406);
});

it("SEC-5 a body that is not UTF-8 is refused, and no character of it replaced", async () => {
  const [answer] = await posted(Buffer.from('{"jsonrpc":"2.0","id":"\xe9","method":"ping"}', "latin1"), {
    accept: "*/*",
  });
  expect([answer.statusCode, await json(answer)]).toEqual([
    400,
    expect.objectContaining({
      error: expect.objectContaining({ code: -32_700, message: "the body is not UTF-8" }),
    }),
  ]);
});

function posted(body: string | Buffer, given: Record<string, string>) {
  const { port, pathname: path } = new URL(door.url);
  const headers = { "content-type": "application/json", "mcp-session-id": "s1", ...given };
  return once(request({ port, method: "POST", path, headers }).end(body), "response");
}

const long = "x".repeat(100_000);
const asking = { jsonrpc: "2.0", id: 1, method: "prompts/get", params: { name: "p" } };

it.each([
  ["an id", { ...asking, id: long }, /the id of a message has at most 1024 characters/],
  ["a token", { ...asking, params: { _meta: { progressToken: long } } }, /progressToken has at most 1024 characters/],
  ["one id of many", [asking, { ...asking, id: long }], /the id of a message has at most 1024 characters/],
] as const)("SEC-5 %s that each event would have again is short", async (_, message, says) => {
  const told = await answerTo(message);
  expect(told).toMatch(says);
  expect(told.length).toBeLessThan(2_000);
});

it("SEC-5 of many faults in a message the first are told", async () => {
  const numbers = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`a${n}`, n]));
  const told = await answerTo({ ...asking, params: { name: "p", arguments: numbers } });
  expect(told).toMatch(/params.arguments.a0: .*; params.arguments.a9: /);
  expect(told.length).toBeLessThan(2_000);
});

it("DOOR-1 a parameter of null, as Go's libraries write an empty map, is none", async () => {
  const params = { name: "count", arguments: null, _meta: null };
  expect(await answerTo({ jsonrpc: "2.0", id: 1, method: "tools/call", params })).toContain('"text":"with {}"');
});

it("DOOR-1 the stream of a call goes on in its own session, and no other one calls again", async () => {
  const headers = { ...resumed(callOf("{}")), accept: "text/event-stream" };
  const told = await (await fetch(door.url, { headers })).text();
  expect(told).toContain("is of another session");
  expect(told).not.toContain("with {}");
});

it("DOOR-1 the stream of a call that an earlier release served goes on", async () => {
  const place = Buffer.from('{"id":1,"name":"count","argumentsJson":"{}"}').toString("base64url");
  const headers = { ...resumed(`call.${place}.x`), accept: "text/event-stream" };
  expect(await (await fetch(door.url, { headers })).text()).toContain("with {}");
});

it("DOOR-1 an agent that fills a page by itself is not taken for the only one", async () => {
  const answer = await postMessage(door.url.replace("/clerk", ""), { jsonrpc: "2.0", id: 1, method: "ping" });
  expect(await answer.text()).toContain("name the agent: /mcp/<agent>, one of large");
});

async function answerTo(message: object): Promise<string> {
  return (await postMessage(door.url, message)).text();
}
