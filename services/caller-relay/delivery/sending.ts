import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { CallerToolRequest } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { CallHeldSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { type AnswerStores, recordedAnswer, refuseLost } from "../requests/answered-requests.ts";
import type { TellCall } from "../requests/calls.ts";
import { keyOfRequest } from "../requests/requests.ts";
import type { Carriage, CarryMode } from "../streams/attachments.ts";
import {
  type CallerStream,
  endStream,
  type StreamRecord,
  type StreamRecords,
  streamsOf,
} from "../streams/stream-record.ts";
import type { Turns } from "../streams/turns.ts";

export interface CarriedBy {
  signal: AbortSignal;
  mode: CarryMode;
}

export interface SendingParts extends AnswerStores {
  /** Has the stream carry a request, in whichever instance, and stays until that ends or the signal aborts. */
  carry: (stream: CallerStream, request: CallerToolRequest, by: CarriedBy) => Promise<Carriage>;
  /** Tells the stream that nobody waits for a request any more, and why. */
  cancel: (stream: CallerStream, requestId: string, why: unknown) => Promise<void>;
  records: StreamRecords;
  changes: KeyedListeners;
  turns: Turns;
  clock: Clock;
  /** Aborts when this instance stops. */
  stopping: AbortSignal;
}

/** Why a request cannot reach the caller any more. */
export type Undelivered = "not_attached" | "disconnected";
export type Sent = { kind: Undelivered } | { kind: "answered"; result: ToolResult };

/** A request's way to its caller. */
export interface Sending {
  stream?: CallerStream | undefined;
  /** Whether a stream that has ended carried it. */
  isSent: boolean;
  /** DELIVERY7: the holder before may have sent it, and might do so again. */
  readonly isResumed: boolean;
  /** DELIVERY8: how long the call may be without an instance, as it was told last. */
  graceMs: number;
  readonly tell: TellCall;
  /** Aborts when it is to be carried no further. */
  readonly over: AbortSignal;
  /** DELIVERY1: the open streams when the call came, until one of them was tried. */
  found: readonly CallerStream[];
  /** Nobody waits for it any more, and why. */
  givenUp?: { why: unknown };
}

/** Resolves when the request cannot reach the caller any more, or was answered while nobody held its call. */
export async function send(parts: SendingParts, request: CallerToolRequest, sending: Sending): Promise<Sent> {
  const { sessionId } = request;
  let last: CallerStream | undefined;
  for (;;) {
    const [first, ...others] = await nextStreams(parts, sessionId, sending);
    if (first === undefined || sending.givenUp) return { kind: sending.isSent ? "disconnected" : "not_attached" };
    const successor = [first, ...others].find(({ streamId }) => streamId !== "" && streamId === last?.streamId);
    last = successor ?? parts.turns.next(sessionId, [first, ...others]);
    for (const mode of sending.isResumed ? (["adopt", "first"] as const) : (["first"] as const)) {
      const sent = await carry(parts, { request, sending, stream: last, mode });
      if (sent !== undefined) return sent;
    }
  }
}

/** DELIVERY1. */
async function nextStreams(parts: SendingParts, sessionId: string, sending: Sending): Promise<readonly CallerStream[]> {
  const { found } = sending;
  sending.found = [];
  if (found.length === 0)
    return findStreams(parts, sessionId, sending.over, (record) => tellGrace(sending, graceOf(record)));
  await tellGrace(sending, longestGraceOf(found));
  return found;
}

/** DELIVERY7: goes on with a request that an instance which is lost may have sent. */
export async function takeOver(parts: SendingParts, request: CallerToolRequest, sending: Sending): Promise<Sent> {
  const { sessionId, requestId } = request;
  const [standing, found] = await Promise.all([
    parts.answered.read(keyOfRequest(sessionId, requestId)),
    parts.records.read(sessionId),
  ]);
  if (standing !== undefined) return { kind: "answered", result: await recordedResult(parts, request) };
  const record = found?.value;
  const graceMs = graceOf(record);
  await tellGrace(sending, graceMs);
  for (const stream of streamsOf(record)) {
    const sent = await carry(parts, { request, sending, stream, mode: "adopt" });
    if (sent !== undefined) return sent;
    if (sending.isSent) return send(parts, request, sending); // it was there, and its stream has ended
  }
  sending.isSent = true;
  return graceMs > 0 ? send(parts, request, sending) : { kind: "disconnected" };
}

function graceOf(record: StreamRecord | undefined): number {
  return record?.kind === "away" ? record.graceMs : longestGraceOf(streamsOf(record));
}

function longestGraceOf(streams: readonly CallerStream[]): number {
  return Math.max(0, ...streams.map(({ graceMs }) => graceMs));
}

/** DELIVERY8. */
async function tellGrace(sending: Sending, graceMs: number): Promise<void> {
  if (graceMs === sending.graceMs) return;
  sending.graceMs = graceMs;
  await sending.tell({ case: "held", value: create(CallHeldSchema, { takeoverGrace: durationFromMs(graceMs) }) });
}

interface Carrying {
  request: CallerToolRequest;
  sending: Sending;
  stream: CallerStream;
  mode: CarryMode;
}

/** Undefined when the request may go on by another stream. */
async function carry(parts: SendingParts, { request, sending, stream, mode }: Carrying): Promise<Sent | undefined> {
  const { sessionId } = request;
  sending.stream = stream;
  const carriage = await parts.carry(stream, request, { signal: sending.over, mode }); // DELIVERY3
  sending.stream = undefined;
  if (carriage.kind === "unknown") return undefined;
  sending.isSent ||= carriage.kind === "ended";
  if (carriage.kind === "ended" && carriage.end === "answered")
    return { kind: "answered", result: await recordedResult(parts, request) };
  if (carriage.kind === "ended" && carriage.end === "replaced") return undefined; // DELIVERY4
  await endStream(parts, sessionId, stream); // DELIVERY5
  return carriage.kind === "ended" && stream.graceMs === 0 ? { kind: "disconnected" } : undefined;
}

/** ANSWER4. */
async function recordedResult(parts: SendingParts, { sessionId, requestId }: CallerToolRequest): Promise<ToolResult> {
  const key = keyOfRequest(sessionId, requestId);
  return (await recordedAnswer(parts, key, true)) ?? refuseLost(key);
}

/** DELIVERY6. */
export async function tellGivenUp(
  parts: SendingParts,
  { sessionId, requestId }: CallerToolRequest,
  { stream, isSent }: Sending,
  why: unknown,
): Promise<void> {
  const unlessAway = () => {}; // its stream has ended, or is about to with its instance: nobody is left to be told
  if (stream !== undefined) return parts.cancel(stream, requestId, why).catch(unlessAway);
  if (!isSent) return;
  const told = findStreams(parts, sessionId, parts.stopping).then((streams) =>
    Promise.all(streams.map((found) => parts.cancel(found, requestId, why))),
  );
  told.catch(unlessAway); // nobody waits for a caller that is away
}

/** Waits for a caller whose grace runs; none when there is none, or none came back. */
async function findStreams(
  { records, changes, clock }: SendingParts,
  sessionId: string,
  signal: AbortSignal,
  onRecord: (record: StreamRecord) => Promise<void> = async () => {},
): Promise<CallerStream[]> {
  for (;;) {
    signal.throwIfAborted();
    using change = changes.next(sessionId); // DELIVERY2
    const found = await records.read(sessionId);
    if (found === undefined) return [];
    const { value: record, revision } = found;
    await onRecord(record);
    if (record.kind === "open") return record.streams;
    const leftMs = record.endedAtMs + record.graceMs - clock.now();
    if (leftMs <= 0) {
      await records.remove(sessionId, revision);
      return [];
    }
    await comesWithin(leftMs, unlessAborted(change.happened, signal), clock);
  }
}
