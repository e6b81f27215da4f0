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
import { startTimer } from "#runtime/time/timer.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";

/** Sends an event; resolves when more may be sent, and throws when the client has left. */
export type Tell = (event: object) => Promise<void>;

export interface Conversation {
  /** Answers a message. It throws only what `tell` does. */
  readonly take: (text: string, tell: Tell) => Promise<void>;
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
  const over = new AbortController();
  const end = (farewell: Farewell) => over.abort(farewell);
  const onStopping = () => end(STOPPING);
  stopping.addEventListener("abort", onStopping, { once: true });
  if (stopping.aborted) onStopping();
  const stopTimer = startTimer(limitMs, () => end(LIMIT_REACHED), { isBackground: true });
  const alive = setInterval(() => socket.ping(), ALIVE_MS).unref();
  const messages = createWebSocketStream(socket, { readableObjectMode: true, readableHighWaterMark: 1 }); // socket-1
  messages.on("error", () => {}); // told to who reads
  const incoming = messages[Symbol.asyncIterator]();
  const tell: Tell = (event) =>
    promisify((done: (error?: Error | null) => void) => socket.send(JSON.stringify(event), done))();
  try {
    while (!over.signal.aborted) {
      const next = await unlessAborted(incoming.next(), over.signal);
      if (next.done) return;
      await take(String(next.value), tell);
    }
  } catch {
    // the connection broke, or it ends by itself
  } finally {
    stopping.removeEventListener("abort", onStopping);
    stopTimer();
    clearInterval(alive);
    await leave(socket, tell, over.signal.aborted ? (over.signal.reason as Farewell) : undefined);
  }
}

async function leave(socket: WebSocket, tell: Tell, farewell: Farewell | undefined): Promise<void> {
  if (farewell !== undefined) await tell(farewell.event).catch(() => {}); // the client was quicker
  socket.close(farewell?.code ?? 1000);
  startTimer(GOODBYE_MS, () => socket.terminate(), { isBackground: true });
}

const LIMIT_REACHED: Farewell = {
  code: 1000,
  event: {
    ...{ type: "error", status: 400 },
    error: {
      type: "invalid_request_error",
      code: "websocket_connection_limit_reached",
      message: "this connection has stood for an hour, which is the limit: open another one",
      param: "",
    },
  },
};

const STOPPING: Farewell = {
  code: 1001,
  event: {
    ...{ type: "error", status: 503 },
    error: {
      type: "server_error",
      code: "INSTANCE_STOPPING",
      message: "this gateway stops: open another connection",
      param: "",
    },
  },
};
