import type { CallHistory, RouterHistory } from "./history.ts";

/** A rule gives what a call's history breaks of it. */
export type Rule = (call: CallHistory, history: RouterHistory) => Iterable<string>;
