import { create } from "@bufbuild/protobuf";
import { type WatchGap, WatchGapSchema, type WatchStart, WatchStartSchema } from "#gen/toolbus/watch/v1/watch_pb.ts";

/** What a watch of a log tells, as the `update` of its answer. */
export type LogUpdate<E> =
  | { case: "start"; value: WatchStart }
  | { case: "gap"; value: WatchGap }
  | { case: "event"; value: E };

export function startUpdate(nextSequence: bigint): LogUpdate<never> {
  return { case: "start", value: create(WatchStartSchema, { nextSequence }) };
}

export function gapUpdate(firstSequence: bigint, lastSequence: bigint): LogUpdate<never> {
  return { case: "gap", value: create(WatchGapSchema, { firstSequence, lastSequence }) };
}

/** Any update of a log's watch, also of one that tells more than these three. */
type AnyUpdate = LogUpdate<{ sequence: bigint | number }> | { case?: string | undefined; value?: unknown };

/** What a watch asks for that goes on behind the update; `place` where the update says nothing of it. */
export function placeAfterUpdate<P extends bigint | undefined>(update: AnyUpdate, place: P): bigint | P {
  if (isCase(update, "start")) return update.value.nextSequence;
  if (isCase(update, "gap")) return update.value.lastSequence + 1n;
  if (isCase(update, "event")) return BigInt(update.value.sequence) + 1n;
  return place;
}

type Known = LogUpdate<{ sequence: bigint | number }>;

function isCase<C extends Known["case"]>(update: AnyUpdate, name: C): update is Extract<Known, { case: C }> {
  return update.case === name;
}
