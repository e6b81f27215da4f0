import { messageFromUnknown } from "../../failure/failure.ts";
import { openPeriodic } from "../../lifecycle/background.ts";
import type { Bus } from "../bus.ts";
import { retryOnBus } from "../link/link.ts";
import { bytesByHolder, excessIn, type HolderOf, rememberingHolders, sizesOf } from "./usage.ts";
import { fillLevelOf, HIGH_WATERMARK, PAUSE_MS } from "./watermarks.ts";

export interface EvictionOptions {
  readonly stream: string;
  readonly holderOf: HolderOf;
  /** The first message of a subject that has to stay, and all after it; none unless told. */
  readonly firstKept?: (subject: string) => Promise<number>;
}

/** Evicts messages while the store is above its high watermark: the oldest of those who hold the most. Gives how many subjects were cut. */
export async function evict(
  bus: Bus,
  { stream, holderOf: asked, firstKept = async () => Number.POSITIVE_INFINITY }: EvictionOptions,
  signal: AbortSignal,
): Promise<number> {
  const level = await fillLevelOf(bus, stream);
  if (level.part < HIGH_WATERMARK) return 0;
  const holderOf = rememberingHolders(asked);
  const excess = excessIn(level, await bytesByHolder(sizesOf(bus, stream, signal), ({ subject }) => holderOf(subject)));
  const keptFrom = new Map<string, number>();
  const cuts = new Map<string, number>();
  for await (const { subject, sequence, bytes } of sizesOf(bus, stream, signal)) {
    const holder = await holderOf(subject);
    const left = excess.get(holder) ?? 0;
    if (left <= 0) continue;
    const kept = keptFrom.get(subject) ?? (await firstKept(subject));
    keptFrom.set(subject, kept);
    if (sequence >= kept) continue;
    excess.set(holder, left - bytes);
    cuts.set(subject, sequence);
  }
  for (const [subject, sequence] of cuts) {
    const purge = () => bus.manager.streams.purge(stream, { filter: subject, seq: sequence + 1 });
    await retryOnBus(bus.link, purge, { what: `making room in ${stream}` });
  }
  return cuts.size;
}

export interface PeriodicEvictionOptions extends EvictionOptions {
  /** What is evicted, as the operator is told. */
  readonly holds: string;
  readonly onFault: (fault: string) => void;
}

/** Evicts again and again until it is disposed, and tells of it. */
export function openEviction(bus: Bus, options: PeriodicEvictionOptions): AsyncDisposable {
  const { stream, holds, onFault } = options;
  return openPeriodic({
    everyMs: PAUSE_MS,
    async work(signal) {
      const cut = await evict(bus, options, signal);
      if (cut > 0) onFault(`${stream} was short of room: the oldest ${holds} under ${cut} subjects are gone`);
    },
    onError: (error) => onFault(`the room of ${stream} could not be looked at: ${messageFromUnknown(error)}`),
  });
}
