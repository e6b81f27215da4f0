import type { Wake } from "./wake.ts";

/** What is done with a wake-up; undefined while there is more to look at. */
export type Verdict = { kind: "done" } | { kind: "leave" } | { kind: "kept" } | { kind: "later"; delayMs: number };

export const putBack: Verdict = { kind: "later", delayMs: 500 };

export function putDown(wake: Wake, verdict: Verdict): void {
  if (verdict.kind === "later") wake.later(verdict.delayMs);
  else if (verdict.kind !== "kept") wake[verdict.kind]();
}

/** A session in the hands of this process. */
export interface Hold {
  readonly wakeId: number;
  /** W2: further wake-ups of the session, put down with the first. */
  readonly kept: Wake[];
  hasNews: boolean;
  /** Makes the run that is under way look at its log. */
  nudge: () => void;
}
