import { randomBytes } from "node:crypto";
import { Code, ConnectError } from "@connectrpc/connect";
import { callPatience } from "../../../bus/link/call-patience.ts";
import { claimedPrincipal } from "../../access/callers.ts";
import type { CallSignal } from "../../handling/call-signal.ts";
import { deliveryOf, notSent, unknownOutcome, wasLost, withDelivery } from "../call/delivery.ts";
import type { ServiceSilence } from "../call/service-silence.ts";
import type { Timings } from "../call/timings.ts";
import { Channel } from "../channel/channel.ts";
import type { Progress } from "../channel/channel-options.ts";
import { SMALLEST_PART_BYTES } from "../channel/credit.ts";
import type { CallMux } from "../channel/mux.ts";
import { isRefusedForNow } from "../frame/error-frame.ts";
import type { Credit } from "../frame/frame.ts";
import { HeaderKey, WireHeaders } from "../frame/headers.ts";
import { partLimit, tooBig } from "../frame/parts.ts";

/** What the calls of one transport have in common. */
export interface ClientContext {
  readonly mux: CallMux;
  /** Where cancels go whose sender does not know the instance. */
  readonly cancelSubject: string;
  /** Whether the service fell silent of late; undefined where another instance is no help. */
  readonly silence: ServiceSilence | undefined;
  readonly timings: Timings;
  readonly sendsExpiry: boolean;
}

/** What the calls of one method have in common. */
export interface MethodRoute {
  readonly subject: string;
  readonly url: string;
  /** It changes nothing, so that it may be asked again whatever became of it. */
  readonly isRead: boolean;
}

/** One call, before it is known how it will go. */
export interface ClientRequest {
  readonly subject: string;
  readonly header: Headers | undefined;
  /** By `performance.now()`. */
  readonly deadlineMs: number | undefined;
  readonly abort: CallSignal;
  readonly progress: Progress;
  readonly isRead: boolean;
}

const MOST_ATTEMPTS = 3;
/** The name of this process' clock. */
const CLOCK = randomBytes(9).toString("base64url");

/**
 * Tries again, a few times, what an instance refused before it started it, for now, and a read of which no answer came. An
 * attempt is to be confirmed (confirmed-call.ts) if the service fell silent of late, or an instance took the request for one that
 * came late.
 */
export async function repeatRefused<T>(
  context: ClientContext,
  request: ClientRequest,
  attempt: (isConfirmed: boolean) => Promise<T>,
): Promise<T> {
  let wasLate = false;
  for (let count = 1; ; count += 1) {
    const ready = context.mux.ready(request.abort, context.timings.silenceMs);
    if (ready) await ready;
    try {
      return await attempt(wasLate || (context.silence?.isSuspected ?? false));
    } catch (error) {
      const mayRepeat = isRefusedForNow(error) || (request.isRead && wasLost(error));
      if (count === MOST_ATTEMPTS || request.abort.aborted || !mayRepeat) throw error;
      wasLate ||= error.code === Code.DeadlineExceeded;
    }
  }
}

/** The headers of a request. Nobody starts it who knows that its sender has given it up: at its deadline, or after so much silence. */
export function openingHeaders(
  context: ClientContext,
  request: ClientRequest,
  more: { credit?: Credit; hasMore?: boolean } = {},
): WireHeaders {
  const now = performance.now();
  const { silenceMs } = context.timings;
  const leftMs = request.deadlineMs === undefined ? undefined : Math.max(Math.round(request.deadlineMs - now), 0);
  const headers = new WireHeaders();
  headers.add(HeaderKey.sent, `${CLOCK} ${Math.floor(now)}`);
  if (context.sendsExpiry)
    headers.add(HeaderKey.expires, String(Date.now() + Math.min(silenceMs, leftMs ?? silenceMs)));
  if (leftMs !== undefined) headers.add(HeaderKey.timeout, String(leftMs));
  const patienceMs = callPatience.sharedMs;
  if (patienceMs !== undefined) headers.add(HeaderKey.patience, String(patienceMs));
  if (more.credit) headers.add(HeaderKey.credit, `${more.credit.messages} ${more.credit.bytes}`);
  if (more.hasMore) headers.add(HeaderKey.more, "1");
  return request.header ? headers.addMetadata(request.header) : headers;
}

/** Refuses what cannot or need not be sent. */
export function assertSendable({ abort }: ClientRequest, body: Uint8Array): void {
  const error = tooBig("the request", body.length);
  if (error) throw withDelivery(error, "NOT_SENT");
  if (abort.aborted) throw withDelivery(ConnectError.from(abort.aborted.reason, Code.Canceled), "NOT_SENT");
}

/** Sends the message that opens a call. */
export function publishOpening(
  context: ClientContext,
  request: ClientRequest,
  opening: { body: Uint8Array; inbox: string; headers: WireHeaders },
): void {
  const { body, inbox, headers } = opening;
  if (!context.mux.publish(request.subject, body, { reply: inbox, headers }))
    throw notSent("the connection to NATS is closed");
}

/**
 * How much of a request may go with its opening: less than fits when much is under way to servers of which nothing has been
 * heard, since nats-server holds it for one that does not read, and cuts that off when it is too much.
 */
export function openingLimit(mux: CallMux, headers: WireHeaders): number {
  const limit = partLimit(mux.maxPayloadBytes, headers);
  return mux.openings.offer(limit, Math.min(limit, SMALLEST_PART_BYTES));
}

/** The client's end of a call that goes on in frames; the request's abort ends it, and tells whoever may have the call. */
export function openChannel(
  context: ClientContext,
  request: ClientRequest,
  options: { window: Credit; inbox?: string; granted?: Credit },
): Channel {
  const { cancelSubject, silence } = context;
  const { subject, progress } = request;
  const sender = () => claimedPrincipal(request.header ?? new Headers(), cancelSubject); // else one provider had the room of all
  const onSilence = silence && (() => silence.notice());
  const channel = new Channel({ ...context, role: "client", subject, progress, sender, onSilence, ...options });
  request.abort.whenAborted((reason) => {
    if (!channel.isOpen) return;
    const delivery = progress.stage === "unsent" ? "NOT_SENT" : "UNKNOWN";
    if (reason instanceof ConnectError) withDelivery(reason, delivery); // the deadline's, which Connect throws as it is
    channel.abort(withDelivery(unknownOutcome("the call was canceled", Code.Canceled, reason), delivery));
  });
  return channel;
}

/**
 * Opens a call that goes on in frames; resolves when the server has shown itself, with the rest of the request if the opening
 * did not have all of it. A confirmed one has nothing.
 */
export async function openChannelCall(
  context: ClientContext,
  request: ClientRequest,
  channel: Channel,
  { body, isConfirmed = false }: { body: Uint8Array; isConfirmed?: boolean },
): Promise<Uint8Array | undefined> {
  const { openings } = context.mux;
  const credit = channel.openingCredit();
  const headers = openingHeaders(context, request, { credit, hasMore: true });
  const first = body.subarray(0, isConfirmed ? 0 : openingLimit(context.mux, headers));
  const isWhole = first.length === body.length && !isConfirmed;
  request.progress.stage = isWhole ? "sent" : "unsent";
  const bookedBytes = openings.take(first.length, first.length);
  try {
    publishOpening(context, request, {
      body: first,
      inbox: channel.inbox,
      headers: isWhole ? openingHeaders(context, request, { credit }) : headers,
    });
    await channel.beginning.opened;
  } finally {
    openings.giveBack(bookedBytes);
  }
  return isWhole ? undefined : body.subarray(first.length);
}

/** Says on a failure of this side, such as an abort, what is known of the delivery; answers of the server stand as they are. */
export function errorOfCall(error: ConnectError, progress: Progress): ConnectError {
  if (error.isWireError || progress.stage === "answered" || deliveryOf(error)) return error;
  return withDelivery(error, progress.stage === "unsent" ? "NOT_SENT" : "UNKNOWN");
}
