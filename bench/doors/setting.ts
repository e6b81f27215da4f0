/** What the processes of the measurement agree on. */
export const AGENT = "measuring";
export const SOURCE = "echo";
export const TOOL = "echo";
/** Answers nobody for a while. */
export const SLOW_TOOL = "slow";
export const SLOW_TEXT = "at last";
export const SLOW_MS = 1_000;

/**
 * The SDK's client at the gateway's door, and at `mcp-proxy`, in front of the same server: one that echoes, and one of many tools.
 * `beside` is the door to an agent that has, beside the server that echoes, one that is dead and one that is slow.
 */
export type Way = "door" | "proxy" | "beside" | "many" | "manyProxy";

/** What the caller's process is asked to do, and what came of it. */
export interface Order {
  way: Way;
  does: "call" | "list";
  inFlight: number;
  durationMs: number;
}

export interface Report {
  p50Ms: number;
  p99Ms: number;
  perSecond: number;
}
