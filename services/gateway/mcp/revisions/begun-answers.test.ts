// What a client of the older protocol can come back for.

import { createSecretKey } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { CallToolResponseSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { createInSpan } from "#runtime/telemetry/in-span.ts";
import { createMcpDoor, type McpDoorOptions } from "../mcp-door.ts";

/** A door before services that tell what they were asked for, and how far the answer was by then. */
async function openDoor(whenAsked: (response: ServerResponse | undefined) => unknown = () => undefined) {
  let response: ServerResponse | undefined;
  const begun: boolean[] = [];
  const given = Promise.withResolvers<void>();
  const parts = {
    enter: async () => ({ principal: "alice" }),
    sessions: {
      async require(id: string) {
        await whenAsked(response);
        return { id };
      },
    },
    stateKey: createSecretKey(new Uint8Array(32)),
    tools: {
      async *callTool() {
        begun.push((response?.socket?.bytesWritten ?? 0) > 0);
        yield create(CallToolResponseSchema, { event: { case: "result", value: { outputJson: "1" } } });
      },
    },
    takeCall: () => () => given.resolve(),
    onFault: () => {},
    inSpan: createInSpan(undefined),
    maxBytes: 1_000_000,
    metadata: {},
  } as unknown as McpDoorOptions;
  const door = createMcpDoor(parts);
  const server = createServer((request, own) => {
    response = own;
    door.takes(request, own, request);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp/clerk`;
  const close = async () => void server.close();
  return { url, begun, ended: given.promise, [Symbol.asyncDispose]: close };
}

const calling = (version: string) => ({
  method: "POST",
  headers: {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-session-id": "s1",
    "mcp-protocol-version": version,
  },
  body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "count", arguments: {} } }),
});

it("DOOR-1 a call is begun when its client has the head of the answer, with which it can come back", async () => {
  await using door = await openDoor();
  const answer = await fetch(door.url, calling("2025-11-25"));
  expect(await answer.text()).toContain('"text":"1"');
  expect(door.begun).toEqual([true]);
});

it.each(["2025-06-18", "2025-11-25"])(
  "DOOR-1 a call whose client of %s has left before it has the head of the answer is not begun",
  async (version) => {
    const leaving = new AbortController();
    await using door = await openDoor(async (response) => {
      const closed = once(response!, "close");
      leaving.abort();
      await closed;
    });
    await expect(fetch(door.url, { ...calling(version), signal: leaving.signal })).rejects.toThrow();
    await door.ended;
    expect(door.begun).toEqual([]);
  },
);
