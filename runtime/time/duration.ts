import {
  type Duration,
  durationFromMs,
  durationMs,
  type Timestamp,
  timestampFromMs,
  timestampMs,
} from "@bufbuild/protobuf/wkt";

/** A duration of the contract in milliseconds; undefined if it is absent. */
export function msFromDuration(duration: Duration | undefined): number | undefined {
  return duration && durationMs(duration);
}

/** A year, which is what the contract allows. */
const LONGEST_MS = 31_536_000_000;

/** When the time of a request is over: as a time of its sender's clock, and as what was left of it at its sending. */
interface Timed {
  readonly deadline?: Timestamp | undefined;
  readonly timeout?: Duration | undefined;
}

/** A request as it came, with the deadline by this process' clock: what was left at its sending counts from now. */
export function byOwnClock<R extends Timed>(request: R): R {
  if (request.timeout === undefined) return request;
  return { ...request, deadline: timestampFromMs(Date.now() + Math.max(0, durationMs(request.timeout))) };
}

/** How a request that ends at a time of this process' clock says so; without an end it says nothing. */
export function timedBy(deadline: number | Timestamp | undefined): { deadline?: Timestamp; timeout?: Duration } {
  const atMs = typeof deadline === "object" ? timestampMs(deadline) : deadline;
  if (atMs === undefined || !Number.isFinite(atMs)) return {};
  const leftMs = Math.min(Math.max(0, Math.floor(atMs - Date.now())), LONGEST_MS);
  return { deadline: timestampFromMs(atMs), timeout: durationFromMs(leftMs) };
}
