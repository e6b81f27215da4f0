import { messageFromUnknown } from "../../failure/failure.ts";
import { refuseShare } from "../../failure/share.ts";
import { openPeriodic } from "../../lifecycle/background.ts";
import type { Bus } from "../bus.ts";
import { excessIn } from "./usage.ts";
import { type FillLevel, fillLevelOf, HIGH_WATERMARK, PAUSE_MS } from "./watermarks.ts";

/** SEC-6: while a store is filled above a watermark, the principals that hold the most of it store nothing more. */
export interface QuotaOptions {
  readonly stream: string;
  /** How many bytes each holds; under an empty name what is nobody's, who is never refused. */
  readonly measure: (signal: AbortSignal) => Promise<ReadonlyMap<string, number>>;
  /** What the store holds, and what makes room in it, in words of whoever is refused: "runs". */
  readonly holds: string;
  readonly remedy: string;
  readonly onFault: (fault: string) => void;
  readonly everyMs?: number;
  /** Filled to less, the store has room for everybody; `HIGH_WATERMARK` unless told. */
  readonly watermark?: number;
}

export interface Quota extends AsyncDisposable {
  /** Whether a principal that is about to store so many bytes is over quota. Who that is, is asked only while anybody is. */
  isOver(principalOf: () => Promise<string>, bytes: number): Promise<boolean>;
  /** Refuses a principal that is over quota; so many bytes are about to be stored. */
  requireRoom(principal: string, bytes?: number): void;
  /** Likewise, unless the value is stored already and takes no more than before; asked only for a principal that would be refused. */
  requireRoomUnless(principal: string, bytes: number, stands: () => Promise<boolean>): Promise<void>;
}

/** When so much of the store is expected since the last measurement, it is measured again: nobody fills it between two. */
const UNMEASURED_PART = 0.02;

/** Measuring takes a fraction of the time, however much there is to measure. */
const PAUSE_FACTOR = 10;

/** Who is over quota, and the quota in bytes; nobody while the store has room. */
export async function findOverQuota(
  bus: Bus,
  store: Pick<QuotaOptions, "stream" | "measure" | "watermark">,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  return overQuotaIn(await fillLevelOf(bus, store.stream), store, signal);
}

async function overQuotaIn(
  level: FillLevel,
  { measure, watermark = HIGH_WATERMARK }: Pick<QuotaOptions, "measure" | "watermark">,
  signal: AbortSignal,
) {
  if (level.part < watermark) return new Map<string, number>();
  const held = await measure(signal);
  const excess = excessIn(level, held);
  excess.delete("");
  return new Map([...excess].map(([holder, bytes]) => [holder, Math.floor((held.get(holder) ?? 0) - bytes)]));
}

/** Measures again and again who is over quota. */
export function openQuota(bus: Bus, store: QuotaOptions): Quota {
  const { stream, holds, remedy, onFault, everyMs = PAUSE_MS } = store;
  let overQuota: ReadonlyMap<string, number> = new Map();
  let restsUntilMs = 0;
  let unmeasuredBytes = 0;
  let mostUnmeasuredBytes = 0; // the first bytes that are expected begin the first measurement
  const periodic = openPeriodic({
    everyMs,
    async work(signal) {
      const startedAtMs = performance.now();
      if (startedAtMs < restsUntilMs) return;
      const before = overQuota.size;
      unmeasuredBytes = 0;
      const level = await fillLevelOf(bus, stream);
      mostUnmeasuredBytes = UNMEASURED_PART * level.targetBytes;
      overQuota = await overQuotaIn(level, store, signal);
      if (before === 0 && overQuota.size > 0)
        onFault(`${stream} has no more room for ${[...overQuota.keys()].join(", ")}`);
      restsUntilMs = performance.now() + PAUSE_FACTOR * (performance.now() - startedAtMs);
    },
    onError: (error) => onFault(`the room of ${stream} could not be looked at: ${messageFromUnknown(error)}`),
  });

  /** So many bytes are about to be stored; the store is measured again when they are many. */
  function expect(bytes: number): void {
    unmeasuredBytes += bytes;
    if (unmeasuredBytes > mostUnmeasuredBytes) periodic.now();
  }

  function requireRoom(principal: string, bytes = 0): void {
    expect(bytes);
    const limit = overQuota.get(principal);
    if (limit === undefined) return;
    refuseShare(principal, { of: stream, share: `bytes of ${holds}`, limit, remedy, retryMs: PAUSE_MS });
  }

  return {
    async isOver(principalOf, bytes) {
      expect(bytes);
      return overQuota.size > 0 && overQuota.has(await principalOf());
    },
    requireRoom,
    async requireRoomUnless(principal, bytes, stands) {
      if (!overQuota.has(principal) || !(await stands())) requireRoom(principal, bytes);
    },
    [Symbol.asyncDispose]: () => periodic[Symbol.asyncDispose](),
  };
}
