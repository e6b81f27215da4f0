import { messageFromUnknown } from "../../failure/failure.ts";
import { openPeriodic } from "../../lifecycle/background.ts";
import type { Bus } from "../bus.ts";
import { retryOnBus } from "../link/link.ts";
import { fillOf, HIGH_MARK, PAUSE_MS } from "./marks.ts";
import { bytesByHolder, excessIn, type HolderOf, rememberingHolders, sizesOf } from "./shares.ts";

export interface GivingWay {
  readonly stream: string;
  readonly holderOf: HolderOf;
  /** The first message of a subject that has to stay, and all after it; none unless told. */
  readonly firstKept?: (subject: string) => Promise<number>;
}

/** Removes messages while room is short: of those who hold the most, the oldest. Gives how many subjects were cut. */
export async function giveWay(
  bus: Bus,
  { stream, holderOf: asked, firstKept = async () => Number.POSITIVE_INFINITY }: GivingWay,
  signal: AbortSignal,
): Promise<number> {
  const fill = await fillOf(bus, stream);
  if (fill.part < HIGH_MARK) return 0;
  const holderOf = rememberingHolders(asked);
  const excess = excessIn(fill, await bytesByHolder(sizesOf(bus, stream, signal), ({ subject }) => holderOf(subject)));
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

export interface KeptWay extends GivingWay {
  /** What is removed, as the operator is told. */
  readonly holds: string;
  readonly onFault: (fault: string) => void;
}

/** Makes room again and again, and tells of it. */
export function openGivingWay(bus: Bus, way: KeptWay): AsyncDisposable {
  const { stream, holds, onFault } = way;
  return openPeriodic({
    everyMs: PAUSE_MS,
    async work(signal) {
      const cut = await giveWay(bus, way, signal);
      if (cut > 0) onFault(`${stream} was short of room: the oldest ${holds} under ${cut} subjects are gone`);
    },
    onError: (error) => onFault(`the room of ${stream} could not be looked at: ${messageFromUnknown(error)}`),
  });
}
