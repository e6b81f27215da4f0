import { messageFromUnknown } from "../../failure/failure.ts";
import { refuseShare } from "../../failure/share.ts";
import { openPeriodic } from "../../lifecycle/background.ts";
import type { Bus } from "../bus.ts";
import { type Fill, fillOf, HIGH_MARK, PAUSE_MS } from "./marks.ts";
import { excessIn } from "./shares.ts";

/** In a store from which nothing is removed for room, those who hold the most store nothing more while room is short. */
export interface CrowdedStore {
  readonly stream: string;
  /** How many bytes each holds; under an empty name what is nobody's, who is never refused. */
  readonly measure: (signal: AbortSignal) => Promise<ReadonlyMap<string, number>>;
  /** What the store holds, and what makes room in it, in words of whoever is refused: "runs". */
  readonly holds: string;
  readonly remedy: string;
  readonly onFault: (fault: string) => void;
  readonly everyMs?: number;
  /** Filled to less, the store has room for everybody; `HIGH_MARK` unless told. */
  readonly mark?: number;
}

export interface Crowding extends AsyncDisposable {
  /** While nobody has his share, whose something is needs not be asked. */
  hasAnybody(): boolean;
  has(principal: string): boolean;
  /** So many bytes are about to be stored. */
  expect(bytes: number): void;
  /** Refuses a principal that has its share while room is short; so many bytes are about to be stored. */
  requireRoom(principal: string, bytes?: number): void;
  /** Likewise, but for what takes no more than what stands there already, which is asked only of who would be refused. */
  requireRoomUnless(principal: string, bytes: number, stands: () => Promise<boolean>): Promise<void>;
}

/** When so much of the store has been asked for, it is looked at again: nobody fills it between two looks. */
const UNSEEN_PART = 0.02;

/** Measuring takes a fraction of the time, however much there is to measure. */
const PAUSE_FACTOR = 10;

/** Who has its share, and how many bytes that is; nobody while there is room. */
export async function findCrowding(
  bus: Bus,
  store: Pick<CrowdedStore, "stream" | "measure" | "mark">,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  return crowdingIn(await fillOf(bus, store.stream), store, signal);
}

async function crowdingIn(
  fill: Fill,
  { measure, mark = HIGH_MARK }: Pick<CrowdedStore, "measure" | "mark">,
  signal: AbortSignal,
) {
  if (fill.part < mark) return new Map<string, number>();
  const held = await measure(signal);
  const excess = excessIn(fill, held);
  excess.delete("");
  return new Map([...excess].map(([holder, bytes]) => [holder, Math.floor((held.get(holder) ?? 0) - bytes)]));
}

/** Looks again and again who has its share. */
export function openCrowding(bus: Bus, store: CrowdedStore): Crowding {
  const { stream, holds, remedy, onFault, everyMs = PAUSE_MS } = store;
  let crowding: ReadonlyMap<string, number> = new Map();
  let restsUntilMs = 0;
  let unseenBytes = 0;
  let mostUnseenBytes = 0; // the first asked for begins the first look
  const periodic = openPeriodic({
    everyMs,
    async work(signal) {
      const startedAtMs = performance.now();
      if (startedAtMs < restsUntilMs) return;
      const before = crowding.size;
      unseenBytes = 0;
      const fill = await fillOf(bus, stream);
      mostUnseenBytes = UNSEEN_PART * fill.targetBytes;
      crowding = await crowdingIn(fill, store, signal);
      if (before === 0 && crowding.size > 0)
        onFault(`${stream} has no more room for ${[...crowding.keys()].join(", ")}`);
      restsUntilMs = performance.now() + PAUSE_FACTOR * (performance.now() - startedAtMs);
    },
    onError: (error) => onFault(`the room of ${stream} could not be looked at: ${messageFromUnknown(error)}`),
  });
  function expect(bytes: number): void {
    unseenBytes += bytes;
    if (unseenBytes > mostUnseenBytes) periodic.now();
  }

  function requireRoom(principal: string, bytes = 0): void {
    expect(bytes);
    const limit = crowding.get(principal);
    if (limit === undefined) return;
    refuseShare(principal, { of: stream, share: `bytes of ${holds}`, limit, remedy, retryMs: PAUSE_MS });
  }

  return {
    expect,
    requireRoom,
    hasAnybody: () => crowding.size > 0,
    has: (principal) => crowding.has(principal),
    async requireRoomUnless(principal, bytes, stands) {
      if (!crowding.has(principal) || !(await stands())) requireRoom(principal, bytes);
    },
    [Symbol.asyncDispose]: () => periodic[Symbol.asyncDispose](),
  };
}
