import { Code, ConnectError } from "@connectrpc/connect";
import { iterableOf } from "../../../handling/iterable-of.ts";
import { unknownOutcome } from "../../call/delivery.ts";
import { Channel } from "../../channel/channel.ts";
import { FIRST_CREDIT, FLOOR_BYTES } from "../../channel/credit.ts";
import {
  assertSendable,
  type ClientContext,
  type ClientRequest,
  openChannel,
  openChannelCall,
  openingHeaders,
  openingLimit,
  repeatRefused,
} from "../client-call.ts";
import { openConfirmed } from "../confirmed-call.ts";
import { LightCall, type WholeAnswer } from "../light-call.ts";

export interface StreamAnswer {
  readonly header: Headers;
  readonly trailer: Headers;
  readonly bodies: AsyncIterable<Uint8Array>;
}

/** What a stream sends: one request that opens it, or any number that follow its opening. */
export type StreamRequests = { kind: "one"; body: Uint8Array } | { kind: "many"; bodies: AsyncIterable<Uint8Array> };

const NO_BODY = new Uint8Array(0);

/** Opens a stream and resolves with its first answer's metadata. */
export async function callStream(
  context: ClientContext,
  request: ClientRequest,
  requests: StreamRequests,
): Promise<StreamAnswer> {
  assertSendable(request, requests.kind === "one" ? requests.body : NO_BODY);
  const opened = await repeatRefused(context, request, (isConfirmed) =>
    isConfirmed && requests.kind === "one"
      ? openConfirmed(context, request, { body: requests.body, window: FIRST_CREDIT })
      : openStream(context, request, requests),
  );
  if (!(opened instanceof Channel)) return { ...opened, bodies: iterableOf(opened.body) };
  if (requests.kind === "many") void sendAll(opened, requests.bodies);
  return { header: await opened.beginning.header, trailer: opened.trailer, bodies: bodiesOf(opened) };
}

/** Gives the whole answer when it is one frame, as that of a unary call. */
async function openStream(
  context: ClientContext,
  request: ClientRequest,
  requests: StreamRequests,
): Promise<WholeAnswer | Channel> {
  if (requests.kind === "many") return openInFrames(context, request, NO_BODY);
  const { body } = requests;
  const { mux } = context;
  const credit = { messages: FIRST_CREDIT.messages, bytes: mux.budget.offer(FIRST_CREDIT.bytes, FLOOR_BYTES) };
  const headers = openingHeaders(context, request, { credit });
  if (body.length > openingLimit(mux, headers)) return openInFrames(context, request, body);
  const answer = await new LightCall(context, request, { body, headers, credit, window: FIRST_CREDIT }).start();
  if (answer instanceof Channel) await answer.beginning.opened;
  return answer;
}

async function openInFrames(context: ClientContext, request: ClientRequest, body: Uint8Array): Promise<Channel> {
  const channel = openChannel(context, request, { window: FIRST_CREDIT });
  try {
    const rest = await openChannelCall(context, request, channel, { body });
    if (rest) void channel.sendRest(rest);
  } catch (error) {
    if (channel.isOpen) channel.fail(error as ConnectError);
    throw error;
  }
  return channel;
}

/** Sends the requests as the server takes them; a failing source ends the call. */
async function sendAll(channel: Channel, bodies: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const body of bodies) await channel.send(body);
    await channel.end();
  } catch (error) {
    channel.abort(
      error instanceof ConnectError ? error : unknownOutcome("the requests could not be read", Code.Canceled, error),
    );
  }
}

async function* bodiesOf(channel: Channel): AsyncIterable<Uint8Array> {
  for (;;) {
    const body = await channel.next();
    if (body === undefined) return;
    yield body;
  }
}
