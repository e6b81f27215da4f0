import type { Act } from "./mix.ts";

/** What the caller of one call saw. */
export interface Seen {
  readonly nonce: string;
  readonly act: Act;
  readonly outcome: Outcome;
  /** Everything that it was shown, logs and progress too. */
  readonly shown: readonly string[];
}

export type Outcome =
  | { readonly kind: "result"; readonly value: unknown }
  | { readonly kind: "error"; readonly text: string }
  | { readonly kind: "failure"; readonly reason: string; readonly message: string };

export type Rule = "crossed" | "untrue" | "twice";

export interface Violation {
  readonly rule: Rule;
  readonly what: string;
}

const NONCE = /n[0-9a-f]{12}x/g;

/** Failures that any call may have beside one that kills their worker. */
const UNKNOWN = ["WORKER_CRASHED"];
/** These say that the function was not begun. */
const NOT_BEGUN = ["WORKER_BACKED_OFF", "WORKER_STOPPED"];

/** `begun` tells how often each function began, by what it wrote itself. */
export function judge(seen: readonly Seen[], begun: ReadonlyMap<string, number>): Violation[] {
  const twice = [...begun].filter(([, times]) => times > 1);
  return [
    ...seen.flatMap((one) => [...crossed(one), ...untrue(one, begun.get(one.nonce) ?? 0)]),
    ...twice.map(
      ([nonce, times]): Violation => ({ rule: "twice", what: `the call ${nonce} was begun ${times} times` }),
    ),
  ];
}

function crossed({ nonce, act, shown }: Seen): Violation[] {
  const others = new Set(shown.flatMap((text) => text.match(NONCE) ?? []).filter((found) => found !== nonce));
  return [...others].map((other) => ({ rule: "crossed", what: `${act.tool} of ${nonce} was shown ${other}` }));
}

function untrue(one: Seen, times: number): Violation[] {
  const { act, nonce, outcome } = one;
  const told = JSON.stringify(outcome).slice(0, 500);
  const what = `${act.tool} of ${nonce}, begun ${times} times, ended with ${told}`;
  return isTrue(one, times) ? [] : [{ rule: "untrue", what }];
}

function isTrue({ act: { ending, leavesAfterMs }, nonce, outcome }: Seen, times: number): boolean {
  if (outcome.kind === "failure") {
    if (NOT_BEGUN.includes(outcome.reason)) return times === 0;
    if (UNKNOWN.includes(outcome.reason)) return true;
    if (outcome.reason === "CANCELED") return leavesAfterMs !== undefined;
    return outcome.reason === "DEADLINE_EXCEEDED" && ending.kind === "deadline";
  }
  if (times === 0) return false;
  if (outcome.kind === "error") {
    return ending.kind === "error" && outcome.text.startsWith(ending.text.replace("NONCE", nonce));
  }
  if (ending.kind === "result") return outcome.value === nonce.repeat(ending.times ?? 1);
  return ending.kind === "result or crash" && outcome.value === nonce;
}
