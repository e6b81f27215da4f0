// Heads of requests that no client sends by itself are refused in words, and are no failure of the gateway.

import { createSecretKey } from "node:crypto";
import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventIdOfCall } from "../mcp/eras/ids/event-ids.ts";
import { createMcpDoor, type McpDoorOptions } from "../mcp/mcp-door.ts";
import { createLoginPaths, type LoginPaths } from "../plain/logins.ts";

const faults: unknown[] = [];
const door = createMcpDoor({
  enter: async () => ({ principal: "alice" }),
  sessions: { require: async (id: string) => ({ id, logLevel: 0 }) },
  stateKey: createSecretKey(new Uint8Array(32)),
  onFault: (fault: unknown) => void faults.push(fault),
  maxBytes: 1_000_000,
  metadata: { challenge: "Bearer", paths: () => false },
} as unknown as McpDoorOptions);
const logins = createLoginPaths({ publicUrl: new URL("https://toolbus.example/"), isOpen: true } as LoginPaths);
const server = createServer((asked, response) => {
  const isTaken = [logins, door.takes].some((takes) => takes(asked, response, asked));
  if (!isTaken) response.writeHead(404).end("nothing takes it");
});

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => void server.close());

const callOf = (argumentsJson: string) => eventIdOfCall({ id: 1, name: "count", argumentsJson });
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
  ["a path that is no address", "GET", "//", {}, 404, /nothing takes it/],
] as const)("SEC-5 %s is refused in words", async (_, method, path, headers, status, says) => {
  const { port } = server.address() as AddressInfo;
  const asking = request({ port, method, path, headers }).end();
  const [answer] = await once(asking, "response");
  expect([answer.statusCode, await text(answer)]).toEqual([status, expect.stringMatching(says)]);
  expect(faults).toEqual([]);
});
