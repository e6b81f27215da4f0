import { Code, ConnectError } from "@connectrpc/connect";
import { notSent, withDelivery } from "./delivery.ts";
import { isRefusedForNow } from "./error-frame.ts";
import type { Credit } from "./frame.ts";
import { HeaderKey, WireHeaders } from "./headers.ts";
import type { CallMux } from "./mux.ts";
import { tooBig } from "./parts.ts";
import { cancelSubjectOf } from "./subjects.ts";
import type { Timings } from "./timings.ts";

/** What the calls of one transport have in common. */
export interface ClientContext {
  readonly mux: CallMux;
  readonly service: string;
  readonly timings: Timings;
}

/** One call, before it is known how it will go. */
export interface ClientRequest {
  readonly subject: string;
  readonly header: Headers;
  readonly deadline: number | undefined;
  readonly signal: AbortSignal;
  readonly progress: Progress;
}

/** How far a call has come, from which a failure's delivery follows. */
export interface Progress {
  stage: "unsent" | "sent" | "answered";
}

const MOST_ATTEMPTS = 3;

/** Tries again, a few times, what an instance refused before it started it, for now. */
export async function repeatRefused<T>(request: ClientRequest, attempt: () => Promise<T>): Promise<T> {
  for (let count = 1; ; count += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (count === MOST_ATTEMPTS || request.signal.aborted || !isRefusedForNow(error)) throw error;
    }
  }
}

/** The headers of a request. Nobody starts it once its sender has given it up: at its deadline, or after so much silence. */
export function openingHeaders(
  context: ClientContext,
  request: ClientRequest,
  more: { credit?: Credit; hasMore?: boolean } = {},
): WireHeaders {
  const now = Date.now();
  const silentAt = now + context.timings.silenceMs;
  const { deadline } = request;
  const headers = new WireHeaders();
  headers.add(HeaderKey.expires, String(deadline === undefined ? silentAt : Math.min(silentAt, deadline)));
  if (deadline !== undefined) headers.add(HeaderKey.timeout, String(Math.max(deadline - now, 0)));
  if (more.credit) headers.add(HeaderKey.credit, `${more.credit.messages} ${more.credit.bytes}`);
  if (more.hasMore) headers.add(HeaderKey.more, "1");
  return headers.addMetadata(request.header);
}

/** Refuses what cannot or need not be sent. */
export function assertSendable(signal: AbortSignal, body: Uint8Array): void {
  const error = tooBig("the request", body.length);
  if (error) throw withDelivery(error, "NOT_SENT");
  if (signal.aborted) throw withDelivery(ConnectError.from(signal.reason, Code.Canceled), "NOT_SENT");
}

/** Sends the message that opens a call. */
export function publishOpening(
  context: ClientContext,
  request: ClientRequest,
  opening: { body: Uint8Array; inbox: string; headers: WireHeaders },
): void {
  try {
    context.mux.connection.publish(request.subject, opening.body, { reply: opening.inbox, headers: opening.headers });
  } catch (error) {
    throw notSent("the request could not be handed to NATS", Code.Unavailable, error);
  }
  request.progress.stage = "sent";
}

/** Cancels a call of which nothing has been heard: any instance may have it. */
export function cancelEverywhere(context: ClientContext, inbox: string): void {
  const { connection } = context.mux;
  if (!connection.isClosed()) connection.publish(cancelSubjectOf(context.service), inbox);
}
