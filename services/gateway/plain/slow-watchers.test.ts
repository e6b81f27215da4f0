// A watcher of external tools that does not read holds its calls back, and none of the gateway's memory.

import { once } from "node:events";
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { until } from "#runtime/time/until.ts";
import { createToolCallDoor, type ToolCallPaths } from "./tool-calls.ts";

const CALLS = 1_000;
const argumentsJson = JSON.stringify("x".repeat(64 * 1024));

it("TOOL-6 calls are taken of the router as their watcher reads them", async () => {
  let [taken, answering]: [number, ServerResponse | undefined] = [0, undefined];
  const calls = {
    async *watchToolCalls() {
      for (; taken < CALLS; taken += 1)
        yield { update: { case: "call", value: { call: { callId: `c${taken}`, argumentsJson }, deliveryId: "d" } } };
    },
  };
  const enter = async () => ({ principal: "scales" });
  const door = createToolCallDoor({ calls, enter, maxBytes: 1_000 } as unknown as ToolCallPaths);
  const server = createServer((request, response) => {
    answering = response;
    door.takes(request, response, request);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const [stream] = (await once(get({ port, path: "/api/tool-calls?tool=weigh" }), "response")) as [IncomingMessage];
  await until(() => answering?.writableNeedDrain || answering?.writableEnded, { what: "an answer that is not read" });
  for (let turn = 0; turn < 100; turn += 1) await setImmediate();
  expect(taken).toBeLessThan(CALLS / 2);
  let told = 0;
  for await (const chunk of stream) told += String(chunk).split("event: call").length - 1;
  expect([taken, told]).toEqual([CALLS, CALLS]);
  server.close();
});
