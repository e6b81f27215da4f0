import { setImmediate as nextTurn } from "node:timers/promises";
import { RoundRobinQueue } from "../../../collections/turns/round-robin-queue.ts";
import { currentPrincipal } from "../../identity.ts";

const SLICE_MS = 5;
const TURN_MS = 20;

const turns = new RoundRobinQueue(1);

/** Until when each sender may go on that has gone on in this turn of the event loop. */
const endsAtBySender = new Map<string, number>();
let turnEndsAt = 0;

/** The steps of each sender that wait for its next slice, which goes to them in their order. */
const waitingBySender = new Map<string, (() => void)[]>();

/**
 * For work of many steps that would hold up what else this thread has to do: what it gives is awaited before each step. After 5 ms
 * of a sender's steps in one turn of the event loop everything else comes first, and then they go on when it is their sender's turn: one
 * such slice in a turn of the event loop. So does what begins 20 ms after the first step of a turn, or later. No slice waits for
 * somebody's heavy work to rest (`ownTurn`), which takes far longer than a slice.
 */
export function openSlices(sender = currentPrincipal() ?? ""): () => Promise<void> {
  return async () => {
    const waiting = waitingBySender.get(sender);
    if (waiting === undefined && mayGoOn(sender)) return;
    const goesOn = Promise.withResolvers<void>();
    if (waiting === undefined) void goOnInTurn(sender, [goesOn.resolve]);
    else waiting.push(goesOn.resolve);
    await goesOn.promise;
  };
}

function mayGoOn(sender: string): boolean {
  const now = performance.now();
  const mayBegin = endsAtBySender.size === 0 || now < turnEndsAt;
  if (mayBegin && !endsAtBySender.has(sender)) beginSlice(sender, now);
  return now < (endsAtBySender.get(sender) ?? 0);
}

/** The steps that wait go on one after the other, each when all that the one before did at once is done. */
async function goOnInTurn(sender: string, waiting: (() => void)[]): Promise<void> {
  waitingBySender.set(sender, waiting);
  let endsAt = 0;
  while (waiting.length > 0) {
    if (performance.now() >= endsAt) {
      await turns.begin(sender, nextTurn);
      endsAt = beginSlice(sender, performance.now());
    }
    waiting.shift()?.();
    await new Promise<void>((resolve) => process.nextTick(resolve));
  }
  waitingBySender.delete(sender);
}

function beginSlice(sender: string, now: number): number {
  if (endsAtBySender.size === 0) {
    turnEndsAt = now + TURN_MS;
    setImmediate(() => endsAtBySender.clear());
  }
  endsAtBySender.set(sender, now + SLICE_MS);
  return now + SLICE_MS;
}
