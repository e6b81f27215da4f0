import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { answerWeb } from "./web-messages.ts";

it("DOOR-1 a client that is still being sent its answer when the gateway stops gets no other behind it", async () => {
  const over = new AbortController();
  const server = createServer((_, response) => {
    const { body } = new Response(`event: message\ndata: ${"x".repeat(8_000_000)}\n\n`);
    const answer = new Response(body, { headers: { "content-type": "text/event-stream" } });
    void answerWeb(response, answer, { signal: over.signal, onBegun() {}, lastWord: async () => "the last word" });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
  await once(socket, "readable");
  for (let turn = 0; turn < 10; turn++) await setImmediate();
  over.abort();
  const told = await text(socket);
  expect(told.length).toBeGreaterThan(8_000_000);
  expect(told.endsWith("the last word\n\n\r\n0\r\n\r\n")).toBe(false);
  server.close();
});
