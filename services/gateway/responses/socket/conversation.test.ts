import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as after } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { createSenderBytes } from "#runtime/rpc/http/body/request-body.ts";
import { type Conversation, converse } from "./conversation.ts";

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());

/** Opens connections, each with such a conversation, with what it is told and the code by which it ends. */
async function openServer(conversation: Pick<Conversation, "take"> & Partial<Conversation>) {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  stack.defer(() => server.close());
  const stopping = new AbortController().signal;
  server.on("connection", (socket, { socket: connection }) =>
    converse(socket, { sender: "mallory", hold() {}, connection, stopping, ...conversation }),
  );
  await once(server, "listening");
  return async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const told: string[] = [];
    socket.on("message", (message) => told.push(JSON.parse(String(message)).type));
    await once(socket, "open");
    return { socket, told, ended: once(socket, "close").then(([code]) => code) };
  };
}

describe("LOOP-18 the messages of a WebSocket", () => {
  it("socket-2: the time of a connection ends it behind the turn that it falls into", async () => {
    const limitMs = 100;
    const take: Conversation["take"] = async (_, send) => {
      await send({ type: "first" });
      await after(3 * limitMs);
      await send({ type: "last" });
    };
    const { socket, told, ended } = await (await openServer({ take, limitMs }))();
    socket.send("go");
    expect([await ended, ...told]).toEqual([1000, "first", "last", "error"]);
  });

  it("SEC-6 socket-4: halves of messages are held as their sender's, and too many end their connection", async () => {
    const holdFor = createSenderBytes(100_000);
    const connect = await openServer({ take: async () => {}, hold: (bytes) => holdFor("mallory", bytes) });
    const half = Buffer.alloc(60_000, " ");
    const [first, second] = [await connect(), await connect()];
    for (let turn = 0; turn < 3; turn += 1) first.socket.send(half);
    first.socket.send(half, { fin: false });
    second.socket.send(half, { fin: false });
    const codes = await Promise.race([first.ended, second.ended]);
    expect([codes, first.told, second.told].flat()).toEqual([1009, "error"]);
    for (const { socket } of [first, second]) socket.terminate();
    await expect.poll(() => holdFor("mallory", 100_000)).toBeUndefined(); // all was given back
  });

  it("SEC-5 socket-5: all else comes between thousands of turns that take no time", async () => {
    let taken = 0;
    const take: Conversation["take"] = (_, send) => {
      taken += 1;
      return send({ type: "error" });
    };
    const { socket } = await (await openServer({ take }))();
    const frames = Buffer.concat(Array.from({ length: 5_000 }, () => Buffer.from([0x81, 0x80, 0, 0, 0, 0])));
    let turns = 0;
    const others = setInterval(() => (turns += taken > 0 && taken < 5_000 ? 1 : 0));
    (socket as unknown as { _socket: Socket })._socket.write(frames);
    await expect.poll(() => taken).toBe(5_000);
    clearInterval(others);
    expect(turns).toBeGreaterThan(2);
  });
});
