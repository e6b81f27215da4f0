import { Code, type ConnectError } from "@connectrpc/connect";
import type { Msg } from "@nats-io/nats-core";
import { notSent, unknownOutcome } from "../call/delivery.ts";
import { isSilent } from "../call/service-silence.ts";
import type { Channel } from "../channel/channel.ts";
import type { MuxCall } from "../channel/mux.ts";
import { cancelEverywhere } from "../channel/subjects.ts";
import { type Credit, FrameFlag, FrameKind, parseFrame } from "../frame/frame.ts";
import { readMetadata, type WireHeaders } from "../frame/headers.ts";
import { type ClientContext, type ClientRequest, openChannel, publishOpening } from "./client-call.ts";

/*
 * A call of one request, as its client sees it until the first frame of its answer.
 *
 *   small request ──▶ LightCall ──▶ one frame is the whole answer            the fast path: one message each way
 *                         └──────▶ any other frame: a Channel goes on with the call (working, parts, further answers)
 *
 * light-call-1  Both fast messages are booked while they are under way: the answer in the budget of the connection, which grants it less
 *     when there is little left, so that it comes in parts; the request among the openings, or in parts too.
 */

/** An answer that came as one frame. */
export interface WholeAnswer {
  readonly body: Uint8Array;
  readonly header: Headers;
  readonly trailer: Headers;
}

export interface LightOpening {
  readonly body: Uint8Array;
  readonly headers: WireHeaders;
  /** What the opening grants the answer. */
  readonly credit: Credit;
  /** The window of the channel that goes on with the call. */
  readonly window: Credit;
}

export class LightCall implements MuxCall {
  readonly subject: string;
  readonly #context: ClientContext;
  readonly #request: ClientRequest;
  readonly #opening: LightOpening;
  readonly #answer = Promise.withResolvers<WholeAnswer | Channel>();
  #inbox = "";
  #openingBytes = 0;
  #state: "waiting" | "settled" | "handedOver" = "waiting";
  #heardAt = performance.now();

  constructor(context: ClientContext, request: ClientRequest, opening: LightOpening) {
    this.#context = context;
    this.#request = request;
    this.#opening = opening;
    this.subject = request.subject;
  }

  /** The whole answer, or the channel that goes on with the call. */
  start(): Promise<WholeAnswer | Channel> {
    const { mux } = this.#context;
    const { body, headers, credit } = this.#opening;
    this.#request.progress.stage = "sent";
    this.#inbox = mux.register(this);
    this.#openingBytes = mux.openings.take(body.length, body.length);
    mux.budget.take(credit.bytes, credit.bytes);
    try {
      publishOpening(this.#context, this.#request, { body, inbox: this.#inbox, headers });
    } catch (error) {
      this.fail(error as ConnectError);
      return this.#answer.promise;
    }
    this.#request.abort.whenAborted((reason) =>
      this.abort(unknownOutcome("the call was canceled", Code.Canceled, reason)),
    );
    return this.#answer.promise;
  }

  receive(message: Msg): void {
    const frame = parseFrame(message.data);
    const isWhole = frame?.kind === FrameKind.data && frame.flags === FrameFlag.end && frame.sequence === 0;
    if (isWhole && frame.body.length <= this.#opening.credit.bytes) this.#answered(message, frame.body);
    else if (message.data.length === 0 && message.headers?.code === 503)
      this.fail(notSent(`nobody serves ${this.subject}`));
    else this.#handOver(message);
  }

  tick(now: number, stalledMs: number): void {
    this.#heardAt += stalledMs;
    const { timings, silence } = this.#context;
    const quietMs = now - this.#heardAt;
    const isNoticed = silence !== undefined && isSilent(quietMs, timings);
    if (isNoticed) silence.notice();
    const isLost = quietMs >= timings.silenceMs || (isNoticed && this.#request.isRead); // which another instance can answer
    if (!isLost) return;
    this.#cancel();
    this.fail(unknownOutcome(`nothing was heard of the call for ${Math.round(quietMs)} ms`));
  }

  fail(error: ConnectError): void {
    if (this.#settle()) this.#answer.reject(error);
  }

  abort(error: ConnectError): void {
    if (this.#state === "waiting") this.#cancel();
    this.fail(error);
  }

  #cancel(): void {
    cancelEverywhere(this.#context.mux, this.#context.cancelSubject, this.#inbox);
  }

  #answered(message: Msg, body: Uint8Array): void {
    const answer = { body, header: new Headers(), trailer: new Headers() };
    readMetadata(message.headers, answer.header, answer.trailer);
    if (this.#settle()) this.#answer.resolve(answer);
  }

  #handOver(message: Msg): void {
    this.#state = "handedOver";
    this.#context.mux.openings.giveBack(this.#openingBytes);
    const { window, credit } = this.#opening;
    const channel = openChannel(this.#context, this.#request, { window, inbox: this.#inbox, granted: credit });
    this.#answer.resolve(channel);
    channel.receive(message);
  }

  #settle(): boolean {
    if (this.#state !== "waiting") return false;
    this.#state = "settled";
    const { mux } = this.#context;
    mux.release(this.#inbox);
    mux.openings.giveBack(this.#openingBytes);
    mux.budget.giveBack(this.#opening.credit.bytes);
    return true;
  }
}
