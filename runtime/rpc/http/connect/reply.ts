import { once } from "node:events";
import type { ServerHttp2Stream } from "node:http2";
import type { Writable } from "node:stream";
import type { ConnectError } from "@connectrpc/connect";
import { connectError } from "../../../failure/connect.ts";
import { type HttpResponse, sinkOf } from "../messages.ts";
import { connectionOf, turns } from "../sockets/turns.ts";

/** Header fields as Node wants them. */
export type NodeHeaders = Record<string, string | string[]>;

export interface ReplyHead {
  readonly status: number;
  readonly fields: NodeHeaders;
}

/** What waits for the end of this turn of the event loop, at most: then it is written at once. */
const MOST_UNSENT_BYTES = 64 * 1024;

/**
 * The answer to one request. Over HTTP/2 it goes to the stream itself: the response that Node makes of one writes head, body and
 * end each by itself, and each write wakes the client. For the same reason what is sent within one turn of the event loop goes
 * as one.
 */
export class Reply {
  readonly #response: HttpResponse;
  readonly #sink: Writable;
  readonly #head: () => ReplyHead;
  #hasBegun = false;
  #unsent: Uint8Array[] = [];
  #unsentBytes = 0;
  #flush: NodeJS.Immediate | undefined;

  /** `head` is asked for when the first bytes go. */
  constructor(response: HttpResponse, head: () => ReplyHead) {
    this.#response = response;
    this.#sink = sinkOf(response);
    this.#head = head;
  }

  /** Sends the head by itself, if nothing has gone yet: a stream may have nothing to say for long. */
  begin(): void {
    if (this.#hasBegun || this.#sink.destroyed) return;
    this.#writeHead();
    if ("flushHeaders" in this.#response) this.#response.flushHeaders();
  }

  /** Resolves when more may be sent. Throws `canceled` when the client has gone. */
  async send(bytes: Uint8Array): Promise<void> {
    if (this.#sink.destroyed) throw clientGone();
    this.#unsent.push(bytes);
    this.#unsentBytes += bytes.length;
    if (this.#unsentBytes >= MOST_UNSENT_BYTES) this.#write();
    else this.#flush ??= setImmediate(() => this.#write());
    if (this.#sink.writableNeedDrain) await this.#drained();
  }

  end(bytes: Uint8Array): void {
    if (this.#sink.destroyed) return;
    this.#unsent.push(bytes);
    const last = this.#taken();
    this.#writeHead();
    this.#sink.end(last);
  }

  #write(): void {
    const bytes = this.#taken();
    if (this.#sink.destroyed) return;
    this.#writeHead();
    this.#sink.write(bytes);
  }

  #taken(): Uint8Array {
    clearImmediate(this.#flush);
    const [only] = this.#unsent;
    const taken = this.#unsent.length === 1 && only ? only : Buffer.concat(this.#unsent);
    this.#unsent = [];
    this.#unsentBytes = 0;
    this.#flush = undefined;
    return taken;
  }

  #writeHead(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    const { status, fields } = this.#head();
    const response = this.#response;
    if ("stream" in response) respond(response.stream, { ...response.getHeaders(), ...fields, ":status": status });
    else response.writeHead(status, fields);
  }

  async #drained(): Promise<void> {
    const gone = new AbortController();
    const onClose = () => gone.abort(clientGone());
    this.#sink.once("close", onClose);
    try {
      await once(this.#sink, "drain", { signal: gone.signal });
    } finally {
      this.#sink.off("close", onClose);
    }
  }
}

function respond(stream: ServerHttp2Stream, head: Parameters<ServerHttp2Stream["respond"]>[0]): void {
  if (!stream.headersSent) stream.respond(head);
}

const shutdowns = new WeakMap<HttpResponse, AbortSignal>();

/** When the signal aborts, its server waits for the answer no longer. */
export function noteShutdown(response: HttpResponse, shutdown: AbortSignal): void {
  shutdowns.set(response, shutdown);
}

/** Aborts then; undefined for an answer of no such server. */
export function shutdownOf(response: HttpResponse): AbortSignal | undefined {
  return shutdowns.get(response);
}

/**
 * Calls when the client has gone before it has its answer, or the server waits for it no longer, and it is still to be told. A stream
 * that its client has reset counts as ended by then.
 */
export function whenOver(response: HttpResponse, onOver: (reason: unknown) => void): void {
  const connection = connectionOf(response.req);
  const sink = sinkOf(response);
  const shutdown = sink.destroyed ? undefined : shutdowns.get(response);
  const onShutdown = () => onOver(shutdown?.reason);
  shutdown?.addEventListener("abort", onShutdown, { once: true });
  if (shutdown?.aborted) onShutdown();
  sink.once("close", () => {
    shutdown?.removeEventListener("abort", onShutdown);
    const hasLeft = "stream" in response ? response.stream.aborted : !response.writableEnded;
    if (hasLeft) turns.begin(connection, () => onOver(clientGone()));
  });
}

/** Aborts then. */
export function signalOf(response: HttpResponse): AbortSignal {
  const over = new AbortController();
  whenOver(response, (reason) => over.abort(reason));
  return over.signal;
}

function clientGone(): ConnectError {
  return connectError("canceled", "the client has left or canceled the call", { reason: "CANCELED" });
}
