/**
 * The sessions that another process answered for, last. Whoever works on one says so for all of its runs: while it does,
 * nobody has to find out from the log which run is under way, and who has it.
 */

import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import type { Holders } from "./wake.ts";
import { redeliverSoon, type WakeOutcome } from "./wake-outcome.ts";

/** Of more sessions than these, the oldest are forgotten: their holders are found in the log. */
const maxRemembered = 10_000;

export type HeldElsewhere = ReturnType<typeof createHeldElsewhere>;

export function createHeldElsewhere(holders: Pick<Holders, "ask">) {
  const instanceBySession = new BoundedMap<string, string>(maxRemembered);

  /** Asks a process for a session; the outcome if the wake-up is not for this one. */
  async function ask(instance: string, sessionId: string, wakeId: number): Promise<WakeOutcome | undefined> {
    const answer = await holders.ask(instance, sessionId, wakeId);
    if (answer === "unsure") return { kind: "later", delayMs: 200 };
    instanceBySession.delete(sessionId);
    if (answer === "free" || answer === "gone") return undefined;
    instanceBySession.set(sessionId, instance);
    return answer === "taken" ? redeliverSoon : { kind: "leave" }; // worker-2
  }

  return {
    ask,
    /** Asks the process that answered last. */
    async askAgain(sessionId: string, wakeId: number): Promise<WakeOutcome | undefined> {
      const instance = instanceBySession.get(sessionId);
      return instance === undefined ? undefined : ask(instance, sessionId, wakeId);
    },
  };
}
