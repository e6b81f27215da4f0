/*
 * The messages of one WebSocket, by the transport of Open Responses of 2026-04-24.
 *
 * socket-1  One turn at a time, in the order in which they were asked for: a message is read once the turn before it is over, and what
 *     comes meanwhile waits at the client.
 * socket-2  The connection ends by itself after an hour, and when this process stops: between turns, with an error that says why.
 * socket-3  A client that leaves has canceled nothing.
 * socket-4  What comes is held as its sender's until its turn is over. More than a sender may hold ends the connection, with the reason.
 * socket-5  Turns that take no time are made in slices: thousands of messages that are refused keep nobody else waiting.
 */

import { promisify } from "node:util";
import { createWebSocketStream, type WebSocket } from "ws";
import { openSlices } from "#runtime/rpc/handling/messages/slices.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { startTimer } from "#runtime/time/timer.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { type ResponseError, responseErrorFrom } from "../http/refusals.ts";
import { HeldMessages, type Holding } from "./held-messages.ts";

/** Sends an event; resolves when more may be sent, and throws when the client has left. */
export type Send = (event: object) => Promise<void>;

export interface Conversation extends Pick<Holding, "connection" | "hold"> {
  /** Answers a message. It throws only what `send` does. */
  readonly take: (text: string, send: Send) => Promise<void>;
  readonly sender: string;
  /** Aborts when this process stops. */
  readonly stopping: AbortSignal;
  /** How long the connection may stand; an hour unless told, as the specification has it. */
  readonly limitMs?: number;
}

const HOUR_MS = 60 * 60_000;
/** How often a connection without messages shows that it lives, which also finds a peer that is gone. */
const ALIVE_MS = 15_000;
/** How long a client may take to say goodbye. */
const GOODBYE_MS = 1_000;

/** Why a connection ends by itself, as its client is told. */
interface Farewell {
  readonly code: number;
  readonly event: object;
}

/** Resolves when the connection is over. */
export async function converse(socket: WebSocket, conversation: Conversation): Promise<void> {
  const { take, sender, stopping, limitMs = HOUR_MS, connection, hold } = conversation;
  using ending = openEnding(stopping);
  const { signal } = ending;
  let farewell = STOPPING;
  const end = (last: Farewell) => {
    farewell = last;
    ending.end(last);
  };
  const stopTimer = startTimer(limitMs, () => end(LIMIT_REACHED), { isBackground: true });
  const onFull = (error: unknown) => end(farewellOf(1009, 429, responseErrorFrom(error)));
  using held = new HeldMessages(socket, { connection, hold, onFull }); // socket-4
  const nextStep = openSlices(sender); // socket-5
  const alive = setInterval(() => socket.ping(), ALIVE_MS).unref();
  const messages = createWebSocketStream(socket, { readableObjectMode: true, readableHighWaterMark: 1 }); // socket-1
  messages.on("error", () => {}); // told to who reads
  const incoming = messages[Symbol.asyncIterator]();
  const send: Send = (event) =>
    promisify((done: (error?: Error | null) => void) => socket.send(JSON.stringify(event), done))();
  try {
    while (!signal.aborted) {
      const next = await unlessAborted(incoming.next(), signal);
      if (next.done) return;
      await nextStep();
      await take(String(next.value), send);
      held.giveBack();
    }
  } catch {
    // the connection broke, or it ends by itself
  } finally {
    stopTimer();
    clearInterval(alive);
    await leave(socket, send, signal.aborted ? farewell : undefined);
  }
}

async function leave(socket: WebSocket, send: Send, farewell: Farewell | undefined): Promise<void> {
  if (farewell !== undefined) await send(farewell.event).catch(() => {}); // the client was quicker
  socket.close(farewell?.code ?? 1000);
  startTimer(GOODBYE_MS, () => socket.terminate(), { isBackground: true });
}

function farewellOf(code: number, status: number, error: Omit<ResponseError, "param">): Farewell {
  return { code, event: { type: "error", status, error: { ...error, param: "" } } };
}

const LIMIT_REACHED = farewellOf(1000, 400, {
  type: "invalid_request_error",
  code: "websocket_connection_limit_reached",
  message: "this connection has stood for an hour, which is the limit: open another one",
});

const STOPPING = farewellOf(1001, 503, {
  type: "server_error",
  code: "INSTANCE_STOPPING",
  message: "this gateway stops: open another connection",
});
