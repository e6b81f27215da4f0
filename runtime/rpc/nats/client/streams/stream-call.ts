import { Code, ConnectError } from "@connectrpc/connect";
import { iterableOf } from "../../../handling/iterable-of.ts";
import { unknownOutcome } from "../../call/delivery.ts";
import { Channel } from "../../channel/channel.ts";
import { FIRST_CREDIT, FLOOR_BYTES } from "../../channel/credit.ts";
import { assertSendable, type ClientContext, type ClientRequest, repeatRefused } from "../client-call.ts";
import { openConfirmed } from "../confirmed-call.ts";
import type { WholeAnswer } from "../light-call.ts";
import { openCall, openInParts } from "../unary-call.ts";

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

const STREAM = { window: FIRST_CREDIT, leastBytes: FLOOR_BYTES };

async function openStream(
  context: ClientContext,
  request: ClientRequest,
  requests: StreamRequests,
): Promise<WholeAnswer | Channel> {
  if (requests.kind === "many") return openInParts(context, request, { body: NO_BODY, window: FIRST_CREDIT });
  const opened = await openCall(context, request, requests.body, STREAM);
  if (opened instanceof Channel) await opened.beginning.opened;
  return opened;
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
