// What one message at the door of MCP clients may make of itself.

import { afterAll, beforeAll, expect, it } from "vitest";
import { ask, begin, send } from "../fixtures/clients.ts";
import { type Door, keys, openDoor } from "../fixtures/door.ts";

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
