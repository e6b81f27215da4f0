import { Code, type ConnectError } from "@connectrpc/connect";
import { unknownOutcome } from "../call/delivery.ts";
import { Channel } from "../channel/channel.ts";
import { SMALLEST_PART_BYTES } from "../channel/credit.ts";
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
      : await openUnary(context, request, body);
    return opened instanceof Channel ? answerFromChannel(opened) : opened;
  });
}

/** Gives the whole answer when it is one frame. */
function openUnary(context: ClientContext, request: ClientRequest, body: Uint8Array): Promise<WholeAnswer | Channel> {
  const { mux } = context;
  const grantedBytes = mux.budget.offer(UNARY_CREDIT.bytes, SMALLEST_PART_BYTES); // light-call-1 of light-call.ts
  const credit = { messages: UNARY_CREDIT.messages, bytes: grantedBytes };
  const headers = openingHeaders(context, request, grantedBytes < UNARY_CREDIT.bytes ? { credit } : {});
  if (body.length > openingLimit(mux, headers)) return openInParts(context, request, body);
  return new LightCall(context, request, { body, headers, credit, window: UNARY_CREDIT }).start();
}

/** Opens the call with the first part of the request and sends the rest as the server takes it. */
async function openInParts(context: ClientContext, request: ClientRequest, body: Uint8Array): Promise<Channel> {
  const channel = openChannel(context, request, { window: UNARY_CREDIT });
  try {
    const rest = await openChannelCall(context, request, channel, { body });
    if (rest) await channel.sendRest(rest);
  } catch (error) {
    if (channel.isOpen) channel.fail(error as ConnectError); // which the reader of the answer is told
  }
  return channel;
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
