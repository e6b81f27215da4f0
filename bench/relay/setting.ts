/** What the processes of the measurement agree on. */
export const AGENT = "measuring";
export const CALLER = "bench";
export const TOOL = "echo";

/** Whose caller answers how many calls at a time, and for how long. */
export interface Order {
  inFlight: number;
  durationMs: number;
  /** The sessions, in turn. */
  sessionIds: readonly string[];
}

export interface Report {
  calls: number;
  p50Ms: number;
  p95Ms: number;
}
