/**
 * A bucket refuses when it is full, and with that everything that needs it. So values that nobody needs any more are evicted before
 * their age when room gets short.
 *
 * bucket-eviction-1  Only values that may go are evicted, those that were written longest ago first, and only above the high watermark.
 *         Where values say whose they are, those of holders over quota are evicted (SEC-6); the others only when these cannot
 *         go, and the bucket would be full for everybody.
 * bucket-eviction-2  A value stays for `keptMs` after it was written, however full the bucket is.
 * bucket-eviction-3  Each process looks at moments of its own. What two of them remove at a time is removed once, and what was written anew stays.
 */

import { messageFromUnknown } from "../../failure/failure.ts";
import { openPeriodic } from "../../lifecycle/background.ts";
import type { Clock } from "../../time/clock.ts";
import type { Bus } from "../bus.ts";
import { retryOnBus } from "../link/link.ts";
import { findOverQuota } from "../quota/quota.ts";
import { usageByHeader } from "../quota/usage.ts";
import { fillLevelOf, HIGH_WATERMARK, LOW_WATERMARK, PAUSE_MS } from "../quota/watermarks.ts";
import { readSubject } from "../streams/read.ts";
import type { Place } from "./bucket.ts";
import { changeFrom } from "./values.ts";

export interface BucketEvictionOptions<T> {
  readonly place: Place<T>;
  readonly keptMs: number;
  /** Whether nobody needs the value any more. Asked for a value that is old enough, while room is short. */
  readonly mayGo: (value: T, key: string, signal: AbortSignal) => boolean | Promise<boolean>;
  /** A sweep asks for so many values at most, and the next one goes on behind them; for all unless told. */
  readonly mostAsked?: number | undefined;
  readonly clock: Clock;
}

const betweenMeasures = 128;
const NEARLY_FULL = 0.9;

/** How much of the bucket is filled, of 1. */
export async function filledPart(bus: Bus, { bucket }: Pick<Place<unknown>, "bucket">): Promise<number> {
  return (await fillLevelOf(bus, `KV_${bucket}`)).part;
}

/** Gives how many were evicted. */
export async function evictValues<T>(
  bus: Bus,
  options: BucketEvictionOptions<T>,
  signal: AbortSignal,
  progress = { fromSequence: 1 },
): Promise<number> {
  const { place } = options;
  if ((await filledPart(bus, place)) < HIGH_WATERMARK) return 0;
  const { holderOf } = place;
  const overQuota = holderOf && (await findOverQuota(bus, usageByHeader(bus, place), signal));
  const byAll = () => sweep(bus, options, signal, { progress, isChosen: () => true });
  if (!holderOf || !overQuota?.size) return byAll();
  const removed = await sweep(bus, options, signal, { progress, isChosen: (value) => overQuota.has(holderOf(value)) });
  if ((await filledPart(bus, place)) < NEARLY_FULL) return removed;
  progress.fromSequence = 1;
  return removed + (await byAll());
}

/** One pass over what is old enough. */
async function sweep<T>(
  bus: Bus,
  { place, keptMs, mayGo, clock, mostAsked = Number.POSITIVE_INFINITY }: BucketEvictionOptions<T>,
  signal: AbortSignal,
  { progress, isChosen }: { progress: { fromSequence: number }; isChosen: (value: T) => boolean },
): Promise<number> {
  const beforeMs = clock.now() - keptMs;
  let removed = 0;
  let asked = 0;
  const { fromSequence } = progress;
  progress.fromSequence = 1;
  for await (const message of readSubject(bus, `$KV.${place.bucket}.${place.prefix}>`, { signal, fromSequence })) {
    if (asked === mostAsked) {
      progress.fromSequence = message.sequence;
      break;
    }
    if (message.time.getTime() > beforeMs) break; // bucket-eviction-2
    const change = changeFrom(bus, place, message);
    if (change.kind !== "set") continue;
    asked += 1;
    if (!isChosen(change.value) || !(await mayGo(change.value, change.key, signal))) continue; // bucket-eviction-1
    if (!(await remove(bus, place, change))) continue; // bucket-eviction-3
    removed += 1;
    if (removed % betweenMeasures === 0 && (await filledPart(bus, place)) < LOW_WATERMARK) break;
  }
  return removed;
}

/**
 * Removes the value if it is still the one that was read. The message of a removal would take the room that it makes, so there is none:
 * who follows the bucket is not told.
 */
async function remove<T>(bus: Bus, { bucket, prefix }: Place<T>, { key, revision }: { key: string; revision: number }) {
  const request = { filter: `$KV.${bucket}.${prefix}${key}`, seq: revision + 1 };
  const purge = () => bus.manager.streams.purge(`KV_${bucket}`, request);
  const { purged } = await retryOnBus(bus.link, purge, { what: `making room in ${bucket}` });
  return purged > 0;
}

export interface PeriodicBucketEvictionOptions<T> extends BucketEvictionOptions<T> {
  /** What fills the bucket when nothing may go, as the operator is told. */
  readonly fills: string;
  readonly onFault: (fault: string) => void;
}

/** Evicts again and again until it is disposed, and tells when the bucket stays above its high watermark. */
export function openBucketEviction<T>(bus: Bus, options: PeriodicBucketEvictionOptions<T>): AsyncDisposable {
  const { place, clock, fills, onFault } = options;
  let isReported = false;
  const progress = { fromSequence: 1 };
  return openPeriodic({
    everyMs: PAUSE_MS,
    clock,
    async work(signal) {
      await evictValues(bus, options, signal, progress);
      const filled = await filledPart(bus, place);
      const isShort = filled >= HIGH_WATERMARK;
      if (isShort && !isReported) {
        onFault(
          `${place.bucket} is filled to ${Math.round(filled * 100)} % with ${fills}: when it is full, it refuses`,
        );
      }
      isReported = isShort;
    },
    onError: (error) => onFault(`the room of ${place.bucket} could not be looked at: ${messageFromUnknown(error)}`),
  });
}
