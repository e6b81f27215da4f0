// What one message at the door of MCP clients may make of itself.

import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, begin, eventsOf, send } from "../fixtures/clients.ts";
import { type Door, keys, openDoor } from "../fixtures/door.ts";
import { askWithTasks } from "../fixtures/modern-hand.ts";

let door: Door;
beforeAll(async () => {
  door = await openDoor();
}, 120_000);
afterAll(() => door[Symbol.asyncDispose]());

const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
const call = (name: string, given: string) =>
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${given}}}`;

it.each([
  ["/mcp/clerk", "note"],
  ["/mcp/clerk?search=1", "call_tool"],
  ["/mcp/~sessions", "session_message"],
  ["/mcp/~suite", "get_run"],
])("SEC-5 arguments without end are refused at %s", async (path, name) => {
  const where = { url: door.suite.url, key: keys.mallory, path };
  const session = path.includes("~") ? {} : { "mcp-session-id": await begin(where) };
  const answer = await send(where, call(name, `{"name":"note","a":${deep}}`), session);
  expect([answer.status, await answer.json()]).toMatchObject([400, { error: { data: { reason: "INVALID_REQUEST" } } }]);
});

it("SEC-6 a batch is no way around a principal's share of requests", async () => {
  const where = { url: door.suite.url, key: keys.mallory };
  const session = { "mcp-session-id": await begin(where) };
  const canceled = (requestId: number) => ({
    jsonrpc: "2.0",
    method: "notifications/cancelled",
    params: { requestId },
  });
  const answer = await send(
    where,
    Array.from({ length: 101 }, (_, n) => canceled(n)),
    session,
  );
  expect([answer.status, await answer.json()]).toMatchObject([400, { error: { data: { reason: "INVALID_REQUEST" } } }]);
  expect(
    (
      await send(
        where,
        Array.from({ length: 100 }, (_, n) => canceled(n)),
        session,
      )
    ).status,
  ).toBe(202);
  await ask(where, "DELETE", session);
});

describe.each(["2025-11-25", "2026-07-28"])("SEC-5 parameters of %s that are not what they must be", (era) => {
  it.each([
    ["tools/call", { arguments: {} }, "params.name: "],
    ["prompts/get", {}, "params.name: "],
    ["resources/read", { uri: 5 }, "params.uri: "],
    ["completion/complete", { ref: { type: "ref/prompt", name: "a" } }, "params.argument: "],
    ["prompts/get", { name: "a".repeat(10_000) }, "there is no prompt"],
    ["tools/list", { cursor: "x" }, "params.cursor: the list is whole"],
    ["resources/list", { cursor: "x" }, "params.cursor: the list is whole"],
  ])("are named to the client of %s: %o", async (method, params, named) => {
    const { error } = await answerTo(era, method, params);
    expect(error.code).toBe(-32_602);
    expect(error.message).toContain(named);
    expect(error.message.length, error.message).toBeLessThan(400);
    expect(error.message).not.toContain("[");
  });

  async function answerTo(era: string, method: string, params: object) {
    const where = { url: door.suite.url, key: keys.mallory };
    if (era === "2026-07-28") return askWithTasks(where, method, params);
    const session = { "mcp-session-id": await begin(where), "mcp-protocol-version": era };
    const answer = await send(where, { jsonrpc: "2.0", id: 1, method, params }, session);
    const isStream = answer.headers.get("content-type") === "text/event-stream";
    for await (const { data } of isStream ? eventsOf(answer) : []) if (data !== "") return JSON.parse(data);
    return answer.json();
  }
});

it.each(["PUT", "PATCH", "OPTIONS"])("SEC-5 who comes by %s is told what there is", async (method) => {
  const answer = await fetch(`${door.suite.url}/mcp/clerk`, {
    method,
    headers: { authorization: `Bearer ${keys.mallory}` },
  });
  expect([answer.status, answer.headers.get("allow")]).toEqual([405, "GET, POST, DELETE"]);
});

it("SEC-5 a request that names no host is the client's fault", async () => {
  const asked = request(`${door.suite.url}/mcp/clerk`, {
    headers: { host: "[bad", authorization: `Bearer ${keys.mallory}` },
  });
  asked.end();
  const [answer]: IncomingMessage[] = await once(asked, "response");
  expect([answer?.statusCode, JSON.parse(await text(answer!))]).toMatchObject([
    400,
    { error: { data: { reason: "INVALID_REQUEST" } } },
  ]);
});
