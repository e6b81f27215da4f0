import { Code, ConnectError } from "@connectrpc/connect";
import type { Msg } from "@nats-io/nats-core";
import { notSent, unknownOutcome, withDelivery } from "../call/delivery.ts";
import { Channel } from "../channel/channel.ts";
import { SMALLEST_PART_BYTES } from "../channel/credit.ts";
import type { MuxCall } from "../channel/mux.ts";
import { cancelEverywhere } from "../channel/subjects.ts";
import { type Credit, FrameFlag, FrameKind, parseFrame } from "../frame/frame.ts";
import { readMetadata, type WireHeaders } from "../frame/headers.ts";
import { UNARY_CREDIT } from "../frame/parts.ts";
import {
  assertSendable,
  type ClientContext,
  type ClientRequest,
  openChannelCall,
  openingHeaders,
  openingLimit,
  publishOpening,
  repeatRefused,
} from "./client-call.ts";

/*
 * A unary call as its client sees it.
 *
 *   small request ──▶ LightCall ──▶ one frame is the whole answer            the fast path: one message each way
 *                         └──────▶ any other frame: a Channel goes on with the call (working, parts)
 *   big request   ──▶ Channel from the start
 *
 * U1  Both fast messages are booked while they are under way: the answer in the budget of the connection, which grants it less
 *     when there is little left, so that it comes in parts; the request among the openings, or in parts too.
 */

export interface UnaryAnswer {
  readonly body: Uint8Array;
  readonly header: Headers;
  readonly trailer: Headers;
}

export async function callUnary(
  context: ClientContext,
  request: ClientRequest,
  body: Uint8Array,
): Promise<UnaryAnswer> {
  assertSendable(request, body);
  const ready = context.mux.ready(request.abort, context.timings.silenceMs);
  if (ready) await ready;
  return repeatRefused(request, () => {
    const { mux } = context;
    const grantedBytes = mux.budget.offer(UNARY_CREDIT.bytes, SMALLEST_PART_BYTES); // U1
    const credit = { messages: UNARY_CREDIT.messages, bytes: grantedBytes };
    const headers = openingHeaders(context, request, grantedBytes < UNARY_CREDIT.bytes ? { credit } : {});
    const isSmall = body.length <= openingLimit(mux, headers);
    return isSmall ? new LightCall(context, request, credit).start(body, headers) : callInParts(context, request, body);
  });
}

class LightCall implements MuxCall {
  readonly subject: string;
  readonly #context: ClientContext;
  readonly #request: ClientRequest;
  /** What the opening grants the answer. */
  readonly #credit: Credit;
  readonly #answer = Promise.withResolvers<UnaryAnswer>();
  #inbox = "";
  #openingBytes = 0;
  #state: "waiting" | "settled" | "handedOver" = "waiting";
  #heardAt = Date.now();

  constructor(context: ClientContext, request: ClientRequest, credit: Credit) {
    this.#context = context;
    this.#request = request;
    this.#credit = credit;
    this.subject = request.subject;
  }

  start(body: Uint8Array, headers: WireHeaders): Promise<UnaryAnswer> {
    const { mux } = this.#context;
    this.#inbox = mux.register(this);
    this.#openingBytes = mux.openings.take(body.length, body.length);
    mux.budget.take(this.#credit.bytes, this.#credit.bytes);
    try {
      publishOpening(this.#context, this.#request, { body, inbox: this.#inbox, headers });
    } catch (error) {
      this.fail(error as ConnectError);
      return this.#answer.promise;
    }
    this.#request.abort.whenAborted((reason) => this.#abort(reason));
    return this.#answer.promise;
  }

  receive(message: Msg): void {
    const frame = parseFrame(message.data);
    const isWhole = frame?.kind === FrameKind.data && frame.flags === FrameFlag.end && frame.sequence === 0;
    if (isWhole && frame.body.length <= this.#credit.bytes) this.#answered(message, frame.body);
    else if (message.data.length === 0 && message.headers?.code === 503)
      this.fail(notSent(`nobody serves ${this.subject}`));
    else this.#handOver(message);
  }

  tick(now: number, stalledMs: number): void {
    this.#heardAt += stalledMs;
    const { silenceMs } = this.#context.timings;
    if (now - this.#heardAt < silenceMs) return;
    this.#cancel();
    this.fail(unknownOutcome(`nothing was heard of the call for ${silenceMs} ms`));
  }

  fail(error: ConnectError): void {
    if (this.#settle()) this.#answer.reject(error);
  }

  #abort(reason: unknown): void {
    if (this.#state !== "waiting") return;
    this.#cancel();
    this.fail(unknownOutcome("the call was canceled", Code.Canceled, reason));
  }

  #cancel(): void {
    cancelEverywhere(this.#context.mux, this.#context.cancelSubject, this.#inbox);
  }

  #answered(message: Msg, body: Uint8Array): void {
    if (!this.#settle()) return;
    const answer = { body, header: new Headers(), trailer: new Headers() };
    readMetadata(message.headers, answer.header, answer.trailer);
    this.#answer.resolve(answer);
  }

  #handOver(message: Msg): void {
    this.#state = "handedOver";
    this.#context.mux.openings.giveBack(this.#openingBytes);
    const channel = openChannel(this.#context, this.#request, { inbox: this.#inbox, granted: this.#credit });
    channel.receive(message);
    this.#answer.resolve(answerFromChannel(channel));
  }

  #settle(): boolean {
    if (this.#state !== "waiting") return false;
    this.#state = "settled";
    const { mux } = this.#context;
    mux.release(this.#inbox);
    mux.openings.giveBack(this.#openingBytes);
    mux.budget.giveBack(this.#credit.bytes);
    return true;
  }
}

async function callInParts(context: ClientContext, request: ClientRequest, body: Uint8Array): Promise<UnaryAnswer> {
  const channel = openChannel(context, request);
  await sendRequest(context, request, channel, body);
  return answerFromChannel(channel);
}

/** Opens the call with the first part of the request and sends the rest as the server takes it. */
async function sendRequest(
  context: ClientContext,
  request: ClientRequest,
  channel: Channel,
  body: Uint8Array,
): Promise<void> {
  try {
    await channel.sendRest(await openChannelCall(context, request, channel, body));
  } catch (error) {
    if (channel.isOpen) channel.fail(error as ConnectError); // which the reader of the answer is told
  }
}

function openChannel(
  context: ClientContext,
  request: ClientRequest,
  opened: { inbox?: string; granted?: Credit } = {},
): Channel {
  const { mux, timings, cancelSubject } = context;
  const channel = new Channel({
    mux,
    timings,
    cancelSubject,
    role: "client",
    window: UNARY_CREDIT,
    subject: request.subject,
    ...opened,
  });
  cancelOnAbort(request, channel);
  return channel;
}

/** Ends the call when its signal is aborted, and tells whoever may have it. */
export function cancelOnAbort(request: ClientRequest, channel: Channel): void {
  request.abort.whenAborted((reason) => {
    if (!channel.isOpen) return;
    if (reason instanceof ConnectError) withDelivery(reason, "UNKNOWN"); // the deadline's, which Connect throws as it is
    channel.abort(unknownOutcome("the call was canceled", Code.Canceled, reason));
  });
}

async function answerFromChannel(channel: Channel): Promise<UnaryAnswer> {
  const body = await channel.next();
  if (body === undefined) throw unknownOutcome("the server ended a unary call without an answer", Code.Internal);
  if ((await channel.next()) !== undefined) {
    const error = unknownOutcome("the server answered a unary call twice", Code.Internal);
    channel.abort(error);
    throw error;
  }
  return { body, header: await channel.beginning.header, trailer: channel.trailer };
}
