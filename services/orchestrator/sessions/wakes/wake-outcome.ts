import type { FreshRun } from "../queue.ts";
import type { Wake } from "./wake.ts";

/** How a wake-up is settled; undefined while the session has more work. */
export type WakeOutcome = { kind: "done" } | { kind: "leave" } | { kind: "kept" } | { kind: "later"; delayMs: number };

export const redeliverSoon: WakeOutcome = { kind: "later", delayMs: 500 };

export function settleWake(wake: Wake, wakeOutcome: WakeOutcome): void {
  if (wakeOutcome.kind === "later") wake.later(wakeOutcome.delayMs);
  else if (wakeOutcome.kind !== "kept") wake[wakeOutcome.kind]();
}

/** A session in the hands of this process. */
export interface Hold {
  readonly wake: Wake;
  /** worker-2: further wake-ups of the session, settled with the first. */
  readonly kept: Wake[];
  isNotified: boolean;
  /** The run that the last wake-up announced, until the session is looked at again or notified of more. */
  fresh: FreshRun | undefined;
  /** Makes the run that is under way look at its log. */
  notify: () => void;
}
