// What a stream has asked the services to tell ends with the stream, however that ends.

import { createSecretKey } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { CallOptions } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { refuse } from "#runtime/failure/failure.ts";
import { createInSpan } from "#runtime/telemetry/in-span.ts";
import { until } from "#runtime/time/until.ts";
import { createMcpDoor, type McpDoorOptions } from "../mcp-door.ts";

const URI = "files://one";
const LISTENING = {
  "mcp-protocol-version": "2026-07-28",
  "mcp-method": "subscriptions/listen",
  "content-type": "application/json",
};

/** A door before services that count who watches resources. */
async function openDoor() {
  const services = { watching: 0, hasRoom: true };
  const source = { source: "files", available: true };
  const parts = {
    enter: async () => ({ principal: "alice" }),
    sessions: { require: async (id: string) => ({ id, logLevel: 0 }), standing: async () => "s1" },
    stateKey: createSecretKey(new Uint8Array(32)),
    tools: {
      async listTools() {
        if (!services.hasRoom) refuse("resource_exhausted", "no room", { reason: "SHARE_EXCEEDED" });
        return { toolsRevision: "1", tools: [], sources: [source], nextPageToken: "" };
      },
    },
    content: {
      listResources: async () => ({ resources: [{ uri: URI, name: "one", icons: [] }], nextPageToken: "" }),
      async *watchResources(_: object, { signal }: CallOptions) {
        services.watching += 1;
        yield { watched: [{ source: "files", uri: URI }], unwatched: [], updated: [] };
        if (signal && !signal.aborted) await once(signal, "abort");
        services.watching -= 1;
      },
    },
    calls: {},
    onFault: () => {},
    inSpan: createInSpan(undefined),
    maxBytes: 1_000_000,
    stopping: new AbortController().signal,
    metadata: { challenge: "" },
  } as unknown as McpDoorOptions;
  const door = createMcpDoor(parts);
  const server = createServer((request, response) => void door.takes(request, response, request)).listen(
    0,
    "127.0.0.1",
  );
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp/clerk`;
  const close = async () => void server.close();
  return { url, services, [Symbol.asyncDispose]: close };
}

const isLeft = (services: { watching: number }) =>
  until(() => services.watching === 0, { timeoutMs: 3_000, what: "the end of the watch of resources" });

it("DOOR-1 a stream of a session that ends because its tools cannot be read leaves nothing that is watched", async () => {
  await using door = await openDoor();
  const headers = { accept: "text/event-stream", "mcp-session-id": "s1", "mcp-protocol-version": "2025-11-25" };
  const stream = await fetch(door.url, { headers });
  await until(() => door.services.watching === 1);
  door.services.hasRoom = false;
  await stream.text();
  await isLeft(door.services);
});

it("DOOR-1 a request that listens and is refused for its tasks leaves nothing that is watched", async () => {
  await using door = await openDoor();
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "hand", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } },
  };
  const taskIds = Array.from({ length: 101 }, (_, n) => `task-${n}`);
  const params = { _meta, notifications: { resourceSubscriptions: [URI], taskIds } };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "subscriptions/listen", params });
  const headers = { ...LISTENING, accept: "application/json, text/event-stream" };
  const answer = await fetch(door.url, { method: "POST", headers, body });
  expect(await answer.text()).toContain("a stream tells of 100 tasks at most");
  await isLeft(door.services);
});
