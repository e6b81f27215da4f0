/**
 * The sessions that another process answered for, last. Whoever works on one says so for all of its runs: while it does,
 * nobody has to find out from the log which run is under way, and who has it.
 */

import type { HolderAnswer, Holders } from "./wake.ts";
import { putBack, type Verdict } from "./wake-outcome.ts";

/** Of more sessions than these, those that were heard of first are forgotten: they are looked for in the log. */
const maxRemembered = 10_000;

export type HeldElsewhere = ReturnType<typeof createHeldElsewhere>;

export function createHeldElsewhere(holders: Pick<Holders, "ask">) {
  const instanceBySession = new Map<string, string>();

  function heard(sessionId: string, instance: string, told: HolderAnswer | "gone" | "unsure"): Verdict | undefined {
    if (told === "unsure") return { kind: "later", delayMs: 200 };
    instanceBySession.delete(sessionId);
    if (told === "free" || told === "gone") return undefined;
    instanceBySession.set(sessionId, instance);
    const oldest = instanceBySession.size > maxRemembered ? instanceBySession.keys().next() : undefined;
    if (oldest?.value !== undefined) instanceBySession.delete(oldest.value);
    return told === "taken" ? putBack : { kind: "leave" }; // W2
  }

  /** Asks a process for a session; a verdict if the wake-up is not for this one. */
  async function ask(instance: string, sessionId: string, wakeId: number): Promise<Verdict | undefined> {
    return heard(sessionId, instance, await holders.ask(instance, sessionId, wakeId));
  }

  return {
    ask,
    /** Asks whoever answered last. */
    async askAgain(sessionId: string, wakeId: number): Promise<Verdict | undefined> {
      const instance = instanceBySession.get(sessionId);
      return instance === undefined ? undefined : ask(instance, sessionId, wakeId);
    },
  };
}
