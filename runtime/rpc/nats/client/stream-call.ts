import { Code, ConnectError } from "@connectrpc/connect";
import { unknownOutcome } from "../call/delivery.ts";
import { Channel } from "../channel/channel.ts";
import { FIRST_CREDIT } from "../channel/credit.ts";
import {
  assertSendable,
  type ClientContext,
  type ClientRequest,
  openChannelCall,
  repeatRefused,
} from "./client-call.ts";
import { cancelOnAbort } from "./unary-call.ts";

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
  const ready = context.mux.ready(request.abort, context.timings.silenceMs);
  if (ready) await ready;
  const channel = await repeatRefused(request, () => openStream(context, request, requests));
  if (requests.kind === "many") void sendAll(channel, requests.bodies);
  return { header: await channel.beginning.header, trailer: channel.trailer, bodies: bodiesOf(channel) };
}

async function openStream(context: ClientContext, request: ClientRequest, requests: StreamRequests): Promise<Channel> {
  const { mux, timings, cancelSubject } = context;
  const channel = new Channel({
    mux,
    timings,
    cancelSubject,
    role: "client",
    window: FIRST_CREDIT,
    subject: request.subject,
  });
  cancelOnAbort(request, channel);
  const body = requests.kind === "one" ? requests.body : NO_BODY;
  try {
    const rest = await openChannelCall(context, request, channel, body);
    if (rest.length > 0) void channel.sendRest(rest);
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
