import { RoundRobinQueue } from "../../../collections/turns/round-robin-queue.ts";
import { currentPrincipal } from "../../identity.ts";

const SLICE_MS = 5;
const TURN_MS = 20;

const turns = new RoundRobinQueue(1);

/** Which turn of the event loop it is, counted while steps are made. */
let turn = 0;
let isCounted = false;
let turnEndsAt = 0;

/**
 * For work of many steps that would hold up what else this thread has to do: what it gives is awaited before each step. After 5 ms
 * of them in one turn of the event loop everything else comes first, and then they go on when it is their sender's turn: one such slice
 * in a turn of the event loop. So does what begins 20 ms after the first step of a turn, or later. No slice waits for somebody's heavy
 * work to rest (`ownTurn`), which takes far longer than a slice.
 */
export function openSlices(sender = currentPrincipal() ?? ""): () => Promise<void> {
  let own = -1;
  let endsAt = 0;
  const begin = () => {
    own = turn;
    endsAt = performance.now() + SLICE_MS;
  };
  return async () => {
    countTurn();
    if (own !== turn && performance.now() < turnEndsAt) begin();
    if (performance.now() < endsAt) return;
    const begins = Promise.withResolvers<void>();
    void turns.run(sender, () => {
      begins.resolve();
      return new Promise((resolve) => setImmediate(resolve));
    });
    await begins.promise;
    begin();
  };
}

function countTurn(): void {
  if (isCounted) return;
  isCounted = true;
  turnEndsAt = performance.now() + TURN_MS;
  setImmediate(() => {
    isCounted = false;
    turn += 1;
  });
}
