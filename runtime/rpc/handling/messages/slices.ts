import { RoundRobinQueue } from "../../../collections/turns/round-robin-queue.ts";
import { currentPrincipal } from "../../identity.ts";

const SLICE_MS = 5;
const TURN_MS = 20;

const turns = new RoundRobinQueue(1);

/** Until when each sender may go on in this turn of the event loop; undefined between turns in which steps are made. */
let endsAtBySender: Map<string, number> | undefined;
let turnEndsAt = 0;

/**
 * For work of many steps that would hold up what else this thread has to do: what it gives is awaited before each step. After 5 ms
 * of a sender's steps in one turn of the event loop everything else comes first, and then they go on when it is their sender's turn: one
 * such slice in a turn of the event loop. So does what begins 20 ms after the first step of a turn, or later. No slice waits for
 * somebody's heavy work to rest (`ownTurn`), which takes far longer than a slice.
 */
export function openSlices(sender = currentPrincipal() ?? ""): () => Promise<void> {
  return async () => {
    const endsAt = currentTurn();
    const now = performance.now();
    if (!endsAt.has(sender) && now < turnEndsAt) endsAt.set(sender, now + SLICE_MS);
    if (now < (endsAt.get(sender) ?? 0)) return;
    const begins = Promise.withResolvers<void>();
    void turns.run(sender, () => {
      begins.resolve();
      return new Promise((resolve) => setImmediate(resolve));
    });
    await begins.promise;
    currentTurn().set(sender, performance.now() + SLICE_MS);
  };
}

function currentTurn(): Map<string, number> {
  if (endsAtBySender !== undefined) return endsAtBySender;
  endsAtBySender = new Map();
  turnEndsAt = performance.now() + TURN_MS;
  setImmediate(() => {
    endsAtBySender = undefined;
  });
  return endsAtBySender;
}
