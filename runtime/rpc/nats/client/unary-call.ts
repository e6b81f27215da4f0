import { Code, type ConnectError } from "@connectrpc/connect";
import { unknownOutcome } from "../call/delivery.ts";
import { Channel } from "../channel/channel.ts";
import { SMALLEST_PART_BYTES } from "../channel/credit.ts";
import type { Credit } from "../frame/frame.ts";
import { UNARY_CREDIT } from "../frame/parts.ts";
import {
  assertSendable,
  type ClientContext,
  type ClientRequest,
  openChannel,
  openChannelCall,
  openingHeaders,
  openingLimit,
  repeatRefused,
} from "./client-call.ts";
import { openConfirmed } from "./confirmed-call.ts";
import { LightCall, type WholeAnswer } from "./light-call.ts";

/** A unary call as its client sees it: a small request goes as a `LightCall`, a big one in parts by a channel from the start. */
export async function callUnary(
  context: ClientContext,
  request: ClientRequest,
  body: Uint8Array,
): Promise<WholeAnswer> {
  assertSendable(request, body);
  return repeatRefused(context, request, async (isConfirmed) => {
    const opened = isConfirmed
      ? await openConfirmed(context, request, { body, window: UNARY_CREDIT })
      : await openCall(context, request, body, UNARY);
    return opened instanceof Channel ? answerFromChannel(opened) : opened;
  });
}

/** What a call grants its answer, and the least of it when the connection's budget is used up. */
interface Granting {
  readonly window: Credit;
  readonly leastBytes: number;
}

const UNARY: Granting = { window: UNARY_CREDIT, leastBytes: SMALLEST_PART_BYTES };

/** A call of one request. Gives the whole answer when it is one frame. */
export async function openCall(
  context: ClientContext,
  request: ClientRequest,
  body: Uint8Array,
  { window, leastBytes }: Granting,
): Promise<WholeAnswer | Channel> {
  const { mux } = context;
  const credit = { messages: window.messages, bytes: mux.budget.offer(window.bytes, leastBytes) }; // light-call-1 of light-call.ts
  const isUsual = window === UNARY_CREDIT && credit.bytes === window.bytes;
  const headers = openingHeaders(context, request, isUsual ? {} : { credit });
  if (body.length > openingLimit(mux, headers)) return openInParts(context, request, { body, window });
  return new LightCall(context, request, { body, headers, credit, window }).start();
}

/** Opens the call with the first part of the request and sends the rest as the server takes it. */
export async function openInParts(
  context: ClientContext,
  request: ClientRequest,
  { body, window }: { body: Uint8Array; window: Credit },
): Promise<Channel> {
  const channel = openChannel(context, request, { window });
  try {
    const rest = await openChannelCall(context, request, channel, { body });
    if (rest) void channel.sendRest(rest);
    return channel;
  } catch (error) {
    if (channel.isOpen) channel.fail(error as ConnectError);
    throw error;
  }
}

async function answerFromChannel(channel: Channel): Promise<WholeAnswer> {
  const body = await channel.next();
  if (body === undefined) throw unknownOutcome("the server ended a unary call without an answer", Code.Internal);
  if ((await channel.next()) !== undefined) {
    const error = unknownOutcome("the server answered a unary call twice", Code.Internal);
    channel.abort(error);
    throw error;
  }
  return { body, header: await channel.beginning.header, trailer: channel.trailer };
}
