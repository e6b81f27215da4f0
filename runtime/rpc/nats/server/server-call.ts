import type { ConnectError, Interceptor } from "@connectrpc/connect";
import { connectError } from "../../../failure/connect.ts";
import { claimedPrincipal } from "../../access/callers.ts";
import { CallContext, type HandledMethod } from "../../handling/handler-context.ts";
import type { Timings } from "../call/timings.ts";
import { Channel } from "../channel/channel.ts";
import { FIRST_CREDIT } from "../channel/credit.ts";
import type { CallMux } from "../channel/mux.ts";
import { errorFromThrown, fittingError } from "../frame/error-frame.ts";
import { bytesFromFrame, type Credit, FrameFlag, FrameKind } from "../frame/frame.ts";
import { headersFromMetadata } from "../frame/headers.ts";
import type { Opening } from "../frame/opening.ts";
import { partLimit, tooBig, UNARY_CREDIT } from "../frame/parts.ts";

/** A method that is served, with what calls of it share. */
export interface ServedMethod extends HandledMethod {
  readonly interceptors: Interceptor[];
  readonly mux: CallMux;
  readonly timings: Timings;
}

/** A call in the hands of this server: its context, its canceling, and the way its answer goes. */
export class ServerCall {
  readonly method: ServedMethod;
  readonly opening: Opening;
  /** The caller's inbox, which is also the call's id. */
  readonly inbox: string;
  readonly context: CallContext;
  readonly startedAt = performance.now();
  #channel: Channel | undefined;
  #hasPeer = true;
  #error: ConnectError | undefined;

  constructor(method: ServedMethod, opening: Opening, inbox: string) {
    this.method = method;
    this.opening = opening;
    this.inbox = inbox;
    this.context = new CallContext(method, opening);
  }

  /** What this call has answered instead of a message, for the statistics. */
  get error(): ConnectError | undefined {
    return this.#error;
  }

  /** The channel of a call that needs more than one frame; opened when it is first asked for. */
  get channel(): Channel {
    if (this.#channel) return this.#channel;
    const { mux, timings } = this.method;
    const onFailure = (error: ConnectError) => this.#lost(error);
    this.#channel = new Channel({
      mux,
      timings,
      role: "server",
      window: FIRST_CREDIT,
      peer: this.inbox,
      sender: () => claimedPrincipal(this.opening.header),
      takesOneRequest: this.#takesOneRequest,
      onFailure,
    });
    this.#channel.addCredit(this.#credit);
    if (this.#isRequestWhole) this.#channel.endIncoming();
    if (!this.#hasPeer && this.#error) this.#channel.fail(this.#error); // nobody is told anything more
    return this.#channel;
  }

  /** Tells the caller of a call that takes long that it is being worked on; from then on its channel does. */
  showLife(now: number): void {
    if (this.#channel || !this.#hasPeer || now - this.startedAt < this.method.timings.heartbeatMs) return;
    this.channel.beat();
  }

  /** The caller has canceled. */
  cancel(): void {
    this.lose(connectError("canceled", "the caller has canceled the call", { reason: "CANCELED" }));
  }

  /** Nobody can be answered any more, and why. */
  lose(error: ConnectError): void {
    this.#lost(error);
    this.#channel?.fail(error);
  }

  /** Ends the call from this side, answering with the error. */
  abort(error: ConnectError): void {
    this.fail(error);
    this.context.abort(error);
  }

  /** The answer of a unary call: one frame if it fits, else in parts as the caller takes them. */
  async answer(body: Uint8Array): Promise<void> {
    if (!this.#hasPeer) return;
    const error = tooBig("the answer", body.length);
    if (error) throw error;
    const headers = headersFromMetadata(this.context.answered);
    const { mux } = this.method;
    const limit = partLimit(mux.maxPayloadBytes, headers);
    const { messages, bytes } = this.#credit;
    if (this.#channel || messages === 0 || body.length > Math.min(limit, bytes))
      return this.channel.send(body, { headers, isLast: true });
    const frame = bytesFromFrame(FrameKind.data, FrameFlag.end, 0, body);
    mux.publish(this.inbox, frame, { headers });
  }

  /** Answers with what the handler has thrown. */
  fail(thrown: unknown): void {
    const error = errorFromThrown(thrown);
    this.#error ??= error;
    if (!this.#hasPeer) return;
    this.#hasPeer = false;
    const { header, trailer } = this.context.answered;
    if (this.#channel) {
      this.#channel.sendError(error, header, trailer);
      return;
    }
    const { mux } = this.method;
    const { body, headers } = fittingError(mux.maxPayloadBytes, error, { header, trailer });
    mux.publish(this.inbox, bytesFromFrame(FrameKind.error, FrameFlag.none, 0, body), { headers });
  }

  close(): void {
    this.#hasPeer = false;
    this.context.end();
  }

  get #takesOneRequest(): boolean {
    const { kind } = this.method.spec;
    return kind === "unary" || kind === "server_streaming";
  }

  get #isRequestWhole(): boolean {
    return this.#takesOneRequest && !this.opening.hasMore;
  }

  get #credit(): Credit {
    return this.opening.credit ?? UNARY_CREDIT;
  }

  #lost(error: ConnectError): void {
    this.#hasPeer = false;
    this.#error ??= error;
    this.context.abort(error);
  }
}
