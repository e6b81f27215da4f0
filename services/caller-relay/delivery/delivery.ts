/**
 * The life of a call to a tool of the caller. The instance that is asked for the call holds it: it waits for the answer, which
 * reaches it wherever it was given. The caller's stream may be in any instance, and may move while the call waits.
 *
 *   find the stream's record ──▶ have the request carried there ──▶ stream ended ──▶ find it again, or give up
 *
 * D1  The record decides where the caller's stream is. It is read again before every sending.
 * D2  Changes are subscribed to before the record is read, so that a caller that comes back is never missed.
 * D3  A request keeps its id and its time, however often it is sent.
 * D4  A stream that a newer one replaced hands its requests over to the newer one. A stream that ended otherwise hands them over
 *     only within the grace that its caller asked for.
 * D5  If a recorded stream is gone, whoever finds out says so in the record.
 * D6  If a call is given up before its tool's time (its run was canceled, its caller left, their deadline passed), the caller
 *     that has the request is told the request's id and the reason (LOOP-15). From then on, an answer is refused like one to an
 *     unknown request. A caller that is away is told when it comes back within its grace. If the instance that holds the call
 *     dies, the instance with the caller's stream tells the caller. At the end of the tool's own time nobody is told: the
 *     request named that time, and its first answer is taken as a late one.
 */

import { create } from "@bufbuild/protobuf";
import type { CallerToolRequest } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { AnsweredRequestSchema } from "#gen/toolbus/internal/caller/v1/answered_request_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Stored } from "#runtime/bus/buckets/bucket.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { errorResult } from "#runtime/results/error-result.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { type AnsweredRequests, recordAnswered } from "../requests/answered-requests.ts";
import type { Holders } from "../requests/holders.ts";
import type { LateRequests } from "../requests/late-requests.ts";
import { keyOfRecord, keyOfRequest, type OpenRequest, type Requests } from "../requests/requests.ts";
import type { Carriage } from "../streams/attachments.ts";
import type { Changes } from "../streams/changes.ts";
import { type AttachedRecord, endStream, type StreamRecords } from "../streams/stream-record.ts";

export interface HeldCall {
  request: CallerToolRequest;
  agent: string;
  /** As the agent sees it. */
  tool: string;
  expiresAtMs: number;
  /** The time that was given, as it is told to the agent. */
  timeoutMs: number;
  /** Whether that is less than the tool's own: what is left of whoever made the call, which then has ended, too. */
  isCapped: boolean;
}

export interface DeliveryParts {
  /** Brings a request to the stream, in whichever instance, and stays until that ends or the signal aborts. */
  carry: (record: AttachedRecord, request: CallerToolRequest, signal: AbortSignal) => Promise<Carriage>;
  /** Tells the stream that nobody waits for a request any more, and why. */
  cancel: (record: AttachedRecord, requestId: string, why: unknown) => Promise<void>;
  records: StreamRecords;
  changes: Changes;
  requests: Requests;
  holders: Holders;
  late: LateRequests;
  answered: AnsweredRequests;
  clock: Clock;
  /** Aborts when this instance stops. */
  stopping: AbortSignal;
}

type Undelivered = "not_attached" | "disconnected";
type Outcome = { kind: "answered"; result: ToolResult } | { kind: "timed_out" } | { kind: Undelivered };

/** A request's way to its caller. */
interface Sending {
  /** The stream that carries it. */
  record?: AttachedRecord | undefined;
  /** Whether a stream that has ended carried it. */
  isSent: boolean;
  /** Aborts when it is to be carried no further. */
  readonly over: AbortSignal;
  /** Nobody waits for it any more, and why. */
  givenUp?: { why: unknown };
}

/** Gives the caller's answer, or the error that the agent is told instead. */
export async function deliver(parts: DeliveryParts, call: HeldCall, signal: AbortSignal): Promise<ToolResult> {
  const over = new AbortController();
  const sending: Sending = { over: over.signal, isSent: false };
  try {
    return await hold(parts, call, sending, signal);
  } finally {
    if (sending.givenUp !== undefined) await tellGivenUp(parts, call.request, sending, sending.givenUp.why);
    over.abort();
  }
}

/** D6. */
async function tellGivenUp(
  parts: DeliveryParts,
  { sessionId, requestId }: CallerToolRequest,
  { record, isSent }: Sending,
  why: unknown,
): Promise<void> {
  const unlessAway = () => {}; // its stream has ended, or is about to with its instance: nobody is left to be told
  if (record !== undefined) return parts.cancel(record, requestId, why).catch(unlessAway);
  if (!isSent) return;
  const told = findStream(parts, sessionId, parts.stopping).then((found) =>
    found === undefined ? undefined : parts.cancel(found.value, requestId, why),
  );
  told.catch(unlessAway); // nobody waits for a caller that is away
}

async function hold(parts: DeliveryParts, call: HeldCall, sending: Sending, signal: AbortSignal): Promise<ToolResult> {
  const { sessionId, requestId } = call.request;
  using _ = parts.holders.announce(sessionId, requestId);
  using open = parts.requests.open(keyOfRequest(sessionId, requestId));
  const outcomes = Promise.race<Outcome>([
    open.answered.then((result) => ({ kind: "answered", result })),
    send(parts, call.request, sending).then((kind) => ({ kind })),
    parts.clock.delay(call.expiresAtMs - parts.clock.now(), sending.over).then(() => ({ kind: "timed_out" })),
  ]);
  try {
    const outcome = await unlessAborted(outcomes, signal);
    if (outcome.kind === "answered") return outcome.result;
    if (outcome.kind === "disconnected" && !(await resolve(parts, call, open))) return await open.answered;
    if (outcome.kind !== "timed_out") return errorResult(textOf(outcome.kind, call), "CALLER_NOT_ATTACHED");
    if (!(await expire(parts, call, open))) return await open.answered;
    if (call.isCapped) sending.givenUp = { why: timeIsOver };
    return errorResult(textOf("timed_out", call), "DEADLINE_EXCEEDED");
  } catch (error) {
    // whoever gave up at the call's own deadline was a moment quicker than the timer here
    const isAtItsTime = call.expiresAtMs - parts.clock.now() <= 100;
    if (signal.aborted && (call.isCapped || !isAtItsTime))
      sending.givenUp = { why: isAtItsTime ? timeIsOver : signal.reason };
    if (signal.aborted) await (isAtItsTime ? expire : resolve)(parts, call, open);
    throw error;
  }
}

const timeIsOver = new Failure("deadline_exceeded", "the time of whoever made the call is over", {
  reason: "DEADLINE_EXCEEDED",
});

/** From here on an answer is late, or comes to nobody when the run has no time left; false when one was quicker. */
function expire(parts: DeliveryParts, call: HeldCall, open: OpenRequest): Promise<boolean> {
  if (call.isCapped) return resolve(parts, call, open);
  return open.expire(async () => {
    const { sessionId, requestId } = call.request;
    const key = keyOfRecord(sessionId, requestId);
    await parts.answered.remove(key); // of a holder that died with the answer: it is asked for once more
    await parts.late.create(key, { agent: call.agent, tool: call.tool }); // written twice is written
  });
}

/** From here on the request is resolved without an answer, and whoever answers is told so; false when one was quicker. */
function resolve({ answered }: DeliveryParts, { request }: HeldCall, open: OpenRequest): Promise<boolean> {
  const key = keyOfRecord(request.sessionId, request.requestId);
  const unlessAway = () => {}; // without the record an answer is refused all the same, as that of an unknown request
  return open.expire(() => recordAnswered(answered, key, create(AnsweredRequestSchema)).catch(unlessAway));
}

function textOf(kind: Undelivered | "timed_out", { request, tool, timeoutMs }: HeldCall): string {
  switch (kind) {
    case "timed_out":
      return `Caller tool "${tool}" timed out after ${timeoutMs}ms`;
    case "disconnected":
      return `Connection lost: the caller disconnected before it answered the call of "${tool}"`;
    case "not_attached":
      return `Connection missing: no caller is attached to session ${request.sessionId} to run "${tool}"`;
  }
}

/** Resolves when the request cannot reach the caller any more. */
async function send(parts: DeliveryParts, request: CallerToolRequest, sending: Sending): Promise<Undelivered> {
  const { sessionId } = request;
  for (;;) {
    const found = await findStream(parts, sessionId, sending.over); // D1
    if (found === undefined || sending.givenUp) return sending.isSent ? "disconnected" : "not_attached";
    sending.record = found.value;
    const carriage = await parts.carry(found.value, request, sending.over); // D3
    sending.record = undefined;
    sending.isSent ||= carriage.kind === "ended";
    if (carriage.kind === "ended" && carriage.end === "replaced") continue; // D4
    await endStream(parts, found); // D5
    if (carriage.kind === "ended" && found.value.graceMs === 0) return "disconnected";
  }
}

/** Waits for a caller whose grace runs; undefined when there is none, or none came back. */
async function findStream(
  { records, changes, clock }: DeliveryParts,
  sessionId: string,
  signal: AbortSignal,
): Promise<Stored<AttachedRecord> | undefined> {
  for (;;) {
    signal.throwIfAborted();
    using change = changes.next(sessionId); // D2
    const found = await records.read(sessionId);
    if (found === undefined) return undefined;
    const { value: record, revision } = found;
    if (record.kind === "attached") return { ...found, value: record };
    const leftMs = record.endedAtMs + record.graceMs - clock.now();
    if (leftMs <= 0) {
      await records.remove(sessionId, revision);
      return undefined;
    }
    await firstOf(change.happened, async (over) => {
      using ending = openEnding(signal, over);
      await clock.delay(leftMs, ending.signal);
    });
  }
}

async function firstOf(happened: Promise<void>, wait: (over: AbortSignal) => Promise<void>): Promise<void> {
  const over = new AbortController();
  try {
    await Promise.race([happened, wait(over.signal)]);
  } finally {
    over.abort();
  }
}
