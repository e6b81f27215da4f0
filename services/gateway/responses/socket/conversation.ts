/*
 * The messages of one WebSocket, by the transport of Open Responses of 2026-04-24.
 *
 * socket-1  One turn at a time, in the order in which they were asked for: a message is read once the turn before it is over, and what
 *     comes meanwhile waits at the client.
 * socket-2  The connection ends by itself after an hour, and when this process stops: between turns, with an error that says why.
 * socket-3  A client that leaves has canceled nothing.
 */

import { promisify } from "node:util";
import { createWebSocketStream, type WebSocket } from "ws";
import { openEnding } from "#runtime/time/ending.ts";
import { startTimer } from "#runtime/time/timer.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { ResponseError } from "../http/refusals.ts";

/** Sends an event; resolves when more may be sent, and throws when the client has left. */
export type Send = (event: object) => Promise<void>;

export interface Conversation {
  /** Answers a message. It throws only what `send` does. */
  readonly take: (text: string, send: Send) => Promise<void>;
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
  const { take, stopping, limitMs = HOUR_MS } = conversation;
  using ending = openEnding(stopping);
  const { signal } = ending;
  const stopTimer = startTimer(limitMs, () => ending.end(LIMIT_REACHED), { isBackground: true });
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
      await take(String(next.value), send);
    }
  } catch {
    // the connection broke, or it ends by itself
  } finally {
    stopTimer();
    clearInterval(alive);
    const farewell = signal.reason === LIMIT_REACHED ? LIMIT_REACHED : STOPPING;
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
