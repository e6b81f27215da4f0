import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { setTimeout as after } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { type Conversation, converse } from "./conversation.ts";

const stack = new AsyncDisposableStack();
afterEach(() => stack.disposeAsync());

/** What a client is told that sends a message, and the code by which its connection ends. */
async function toldTo(conversation: Pick<Conversation, "take" | "limitMs">) {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  stack.defer(() => server.close());
  const stopping = new AbortController().signal;
  server.on("connection", (socket) => converse(socket, { stopping, ...conversation }));
  await once(server, "listening");
  const socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const told: string[] = [];
  socket.on("message", (message) => told.push(JSON.parse(String(message)).type));
  await once(socket, "open");
  socket.send("go");
  const [code] = await once(socket, "close");
  return { told, code };
}

describe("LOOP-18 the messages of a WebSocket", () => {
  it("socket-2: the time of a connection ends it behind the turn that it falls into", async () => {
    const limitMs = 100;
    const take: Conversation["take"] = async (_, send) => {
      await send({ type: "first" });
      await after(3 * limitMs);
      await send({ type: "last" });
    };
    expect(await toldTo({ take, limitMs })).toEqual({ told: ["first", "last", "error"], code: 1000 });
  });
});
