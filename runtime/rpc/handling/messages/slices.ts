import { ownTurn } from "../../../collections/turns/own-turn.ts";
import { currentPrincipal } from "../../identity.ts";

const SLICE_MS = 5;

/**
 * For work of many steps that would hold up what else this thread has to do: what it gives is awaited before each step. After 5 ms
 * of them all else has as long, and then they go on when it is their principal's turn.
 */
export function openSlices(): () => Promise<void> {
  let endsAt = performance.now() + SLICE_MS;
  return async () => {
    if (performance.now() < endsAt) return;
    await ownTurn({ sender: currentPrincipal() ?? "" });
    endsAt = performance.now() + SLICE_MS;
  };
}
