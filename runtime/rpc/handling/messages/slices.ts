import { RoundRobinQueue } from "../../../collections/turns/round-robin-queue.ts";
import { currentPrincipal } from "../../identity.ts";

const SLICE_MS = 5;

const turns = new RoundRobinQueue(1);

/**
 * For work of many steps that would hold up what else this thread has to do: what it gives is awaited before each step. After 5 ms
 * of them everything else comes first, and then they go on when it is their sender's turn: one slice in a turn of the event loop.
 * No slice waits for somebody's heavy work to rest (`ownTurn`), which takes far longer than a slice.
 */
export function openSlices(sender = currentPrincipal() ?? ""): () => Promise<void> {
  let endsAt = performance.now() + SLICE_MS;
  return async () => {
    if (performance.now() < endsAt) return;
    const begins = Promise.withResolvers<void>();
    void turns.run(sender, () => {
      begins.resolve();
      return new Promise((resolve) => setImmediate(resolve));
    });
    await begins.promise;
    endsAt = performance.now() + SLICE_MS;
  };
}
