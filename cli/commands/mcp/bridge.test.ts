import type { JSONRPCMessage, StreamableHTTPClientTransport, Transport } from "@modelcontextprotocol/client";
import { expect, test, vi } from "vitest";
import { connect } from "./bridge.ts";

test("DOOR-1 an answer with an error of null beside its result is passed on without it", () => {
  const { write, sent, told } = openBridge();
  write({ id: 1, result: { action: "accept" }, error: null });
  expect(sent).toEqual([{ jsonrpc: "2.0", id: 1, result: { action: "accept" } }]);
  expect(told).toEqual([]);
});

test("DOOR-1 an answer that is none is noted: a client takes what has the id of its own request as the answer to that", () => {
  const { write, sent, told, onerror } = openBridge();
  write({ id: 1, result: "accept" });
  write({ id: 1, result: {}, error: { code: 1, message: "both" } });
  expect([...sent, ...told]).toEqual([]);
  expect(onerror).toHaveBeenCalledTimes(2);
});

test("DOOR-1 only what is meant as a request is refused under its id", () => {
  const { write, told } = openBridge();
  write({ id: 1, method: "ping", params: [] });
  write({ id: 2 });
  const error = expect.objectContaining({ code: -32_600 });
  expect(told).toEqual([
    { jsonrpc: "2.0", id: 1, error },
    { jsonrpc: "2.0", error },
  ]);
});

test("DOOR-1 behind what cannot be read, all that waits is answered with the reason", async () => {
  const { bridge, write, told } = openBridge();
  for (const id of [1, "two"]) write({ id, method: "tools/list" });
  await bridge.giveUp("the line is too long");
  const message = "the line is too long; what was sent before may have happened";
  expect(told).toEqual([
    { jsonrpc: "2.0", error: { code: -32_600, message: "the line is too long" } },
    { jsonrpc: "2.0", id: 1, error: { code: -32_000, message } },
    { jsonrpc: "2.0", id: "two", error: { code: -32_000, message } },
  ]);
  await bridge.idle();
});

test("DOOR-1 what waits for the handshake is not sent any more once it is answered", async () => {
  const { bridge, write, sent, told } = openBridge();
  write({ id: 1, method: "initialize", params: {} });
  for (const id of [2, 3]) write({ id, method: "tools/call", params: { name: "pay" } });
  write({ method: "notifications/cancelled", params: { requestId: 3 } });
  await bridge.giveUp("the line is too long");
  await new Promise(setImmediate);
  expect(sent.filter((message) => "id" in message)).toMatchObject([{ method: "initialize" }]);
  expect(told).toMatchObject([{ error: { code: -32_600 } }, { id: 1 }, { id: 2 }]);
});

test("DOOR-1 a client that closes stdin has no stream of changes to wait for", async () => {
  const { bridge, write } = openBridge();
  write({ id: 1, method: "subscriptions/listen", params: { notifications: {} } });
  await bridge.idle();
});

function openBridge() {
  const sent: JSONRPCMessage[] = [];
  const told: JSONRPCMessage[] = [];
  const onerror = vi.fn<NonNullable<Transport["onerror"]>>();
  const far = { send: async (message: JSONRPCMessage) => void sent.push(message) };
  const near = { send: async (message: JSONRPCMessage) => void told.push(message), onerror };
  const bridge = connect(near, far as unknown as StreamableHTTPClientTransport);
  const write = (message: object) => bridge.take(JSON.stringify({ jsonrpc: "2.0", ...message }));
  return { bridge, write, sent, told, onerror };
}
