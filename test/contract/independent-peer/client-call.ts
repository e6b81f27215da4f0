// One call, as its client sees it. Written from docs/connect-over-nats/README.md.

import { randomUUID } from "node:crypto";
import type { MsgHdrs } from "nats";
import { type Credit, creditUnsaid, decodeCredit, encodeCredit, type Frame, Kind } from "./frames/frame.ts";
import { FrameLine } from "./frames/frame-line.ts";
import { Intake } from "./intake.ts";
import type { Link } from "./link.ts";
import { metadataOf, sizeOf, toBlock, trailersOf } from "./metadata.ts";
import { maxMessageBytes, maxPartBytes, Outbox } from "./outbox.ts";
import { type Delivery, decodeError, PeerError, tooLarge, toPeerError } from "./peer-error.ts";

const silenceMs = 3_000;
const clock = randomUUID().slice(0, 8);

export interface CallOptions {
  readonly metadata?: Headers;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** What the server may send before it is granted more; unsaid: what the opening need not say. */
  readonly window?: Credit;
  /** For tests of openings that were long on their way: what the clock shows instead. */
  readonly sent?: string;
}

export interface Target {
  readonly service: string;
  /** As `package.Service.Method`. */
  readonly method: string;
  /** Whether the opening has the request as its payload. */
  readonly isRequestWhole: boolean;
}

export class ClientCall implements AsyncIterable<Uint8Array> {
  /** Of the response; complete when its first message comes. */
  header = new Headers();
  trailer = new Headers();
  readonly line: FrameLine;
  readonly #link: Link;
  readonly #target: Target;
  readonly #options: CallOptions;
  readonly #intake: Intake;
  readonly outbox: Outbox;
  #hasHeader = false;
  #isSent = false;
  /** The server has not got the whole request, and cannot have started. */
  #isHeldBack = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(link: Link, target: Target, options: CallOptions) {
    this.#link = link;
    this.#target = target;
    this.#options = options;
    this.line = new FrameLine(link, {
      onFrame: (frame, headers) => this.#onFrame(frame, headers),
      onBroken: (error) => this.abort(error),
    });
    this.#intake = new Intake(options.window ?? creditUnsaid, (credit) =>
      this.line.send({ kind: Kind.credit, body: encodeCredit(credit) }),
    );
    this.outbox = new Outbox((part) => this.line.send({ kind: Kind.data, ...part }), { messages: 0, bytes: 0 });
    this.#limit();
  }

  /** Sends the requests; what goes wrong is seen by the reader of the answers. */
  async start(requests: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      if (!(await this.#link.isThere(silenceMs))) {
        throw new PeerError("unavailable", "NATS is away", { delivery: "NOT_SENT" });
      }
      if (this.#target.isRequestWhole) await this.#sendWhole(requests);
      else await this.#sendStream(requests);
    } catch (error) {
      this.abort(toPeerError(error));
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      yield* this.#intake;
    } finally {
      this.abort(new PeerError("canceled", "the caller reads no further"));
    }
  }

  abort(error: PeerError): void {
    if (this.line.isClosed) return;
    if (this.line.peerInbox !== undefined) this.line.send({ kind: Kind.cancel });
    else if (this.#isSent) {
      this.#link.publish(`toolbus.rpc.${this.#target.service}.cancel`, Buffer.from(this.line.inbox));
    }
    this.#finish(error);
  }

  async #sendWhole(requests: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const request of requests) {
      if (request.length > maxMessageBytes) throw tooLarge("NOT_SENT");
      const room = this.#link.maxPayload - sizeOf(this.#openingBlock(true));
      if (room <= 0) throw new PeerError("resource_exhausted", "too much metadata", { delivery: "NOT_SENT" });
      const size = Math.min(request.length, maxPartBytes, room);
      const more = size < request.length;
      this.#isHeldBack = more;
      this.#open(request.subarray(0, size), more);
      if (!more) return;
      await this.outbox.opened();
      await this.outbox.sendRest(request.subarray(size), () => {
        this.#isHeldBack = false;
      });
      return;
    }
  }

  async #sendStream(requests: AsyncIterable<Uint8Array>): Promise<void> {
    this.#open(new Uint8Array(), false);
    for await (const request of requests) await this.outbox.send(request);
    await this.outbox.opened();
    this.line.send({ kind: Kind.end });
  }

  #open(payload: Uint8Array, more: boolean): void {
    if (this.line.isClosed) return;
    this.#isSent = true;
    this.line.begin();
    const { service, method } = this.#target;
    const headers = this.#openingBlock(more);
    this.#link.publish(`toolbus.rpc.${service}.${method}`, payload, { reply: this.line.inbox, headers });
  }

  #openingBlock(more: boolean): MsgHdrs | undefined {
    const { metadata, timeoutMs, window, sent = `${clock} ${Math.floor(performance.now())}` } = this.#options;
    const own = {
      "Rpc-Sent": sent,
      "Rpc-Expires": `${Date.now() + Math.min(timeoutMs ?? silenceMs, silenceMs)}`,
      ...(timeoutMs !== undefined && { "Rpc-Timeout": `${timeoutMs}` }),
      ...(window && { "Rpc-Credit": `${window.messages} ${window.bytes}` }),
      ...(more && { "Rpc-More": "1" }),
    };
    return toBlock({ metadata, own });
  }

  #onFrame(frame: Frame, headers: MsgHdrs | undefined): void {
    const { kind, body } = frame;
    const answers: number[] = [Kind.data, Kind.end, Kind.error];
    if (!this.#hasHeader && answers.includes(kind)) {
      this.#hasHeader = true;
      this.header = metadataOf(headers);
    }
    if (kind === Kind.data) this.#take(frame);
    if (kind === Kind.credit) this.outbox.add(decodeCredit(body));
    this.outbox.open();
    if (kind === Kind.end || (kind === Kind.data && frame.end)) this.#endedBy(headers);
    if (kind === Kind.error) this.#finish(errorOf(body, headers, this.line.received === 1));
  }

  #endedBy(headers: MsgHdrs | undefined): void {
    if (this.line.isClosed) return;
    this.trailer = trailersOf(headers);
    try {
      this.#intake.finish();
      this.#finish(undefined);
    } catch (error) {
      this.abort(toPeerError(error));
    }
  }

  #take({ body, more }: Frame): void {
    try {
      this.#intake.take(body, more);
    } catch (error) {
      this.abort(toPeerError(error));
    }
  }

  #limit(): void {
    const { timeoutMs, signal } = this.#options;
    const stop = (code: string) =>
      this.abort(new PeerError(code, "", { delivery: this.#isSent ? "UNKNOWN" : "NOT_SENT" }));
    if (timeoutMs !== undefined) this.#timer = setTimeout(() => stop("deadline_exceeded"), timeoutMs);
    if (signal?.aborted) stop("canceled");
    signal?.addEventListener("abort", () => stop("canceled"), { once: true });
  }

  #finish(failure: PeerError | undefined): void {
    const isUnbegun = this.#isHeldBack && failure?.delivery === "UNKNOWN" && failure.code !== "internal";
    const error = isUnbegun ? new PeerError(failure.code, failure.message, { delivery: "NOT_SENT" }) : failure;
    clearTimeout(this.#timer);
    this.line.close();
    if (error) this.#intake.fail(error);
    else this.#intake.end();
    this.outbox.fail(error ?? new PeerError("canceled", "the server has ended the call"));
  }
}

/** That nothing was started is believed of the first frame only. */
function errorOf(body: Uint8Array, headers: MsgHdrs | undefined, isFirst: boolean): PeerError {
  const saysNotSent = headers?.get("Rpc-Delivery") === "NOT_SENT";
  const delivery: Delivery | undefined = saysNotSent ? (isFirst ? "NOT_SENT" : "UNKNOWN") : undefined;
  return decodeError(body, { metadata: trailersOf(headers), delivery });
}
