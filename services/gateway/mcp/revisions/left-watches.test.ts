// What a stream has asked the services to tell ends with the stream, however that ends.

import { once } from "node:events";
import { expect, it } from "vitest";
import { refuse } from "#runtime/failure/failure.ts";
import { until } from "#runtime/time/until.ts";
import { openTestDoor } from "../http/testing/door.ts";

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
  const door = await openTestDoor({
    tools: {
      listTools() {
        if (!services.hasRoom) refuse("resource_exhausted", "no room", { reason: "SHARE_EXCEEDED" });
        return { toolsRevision: "1", sources: [source] };
      },
    },
    content: {
      listResources: () => ({ resources: [{ uri: URI, name: "one" }] }),
      async *watchResources(_, { signal }) {
        services.watching += 1;
        yield { watched: [{ source: "files", uri: URI }] };
        if (!signal.aborted) await once(signal, "abort");
        services.watching -= 1;
      },
    },
  });
  return { ...door, services };
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
