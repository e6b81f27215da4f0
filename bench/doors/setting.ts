/** What the processes of the measurement agree on. */
export const AGENT = "measuring";
export const SOURCE = "echo";
export const TOOL = "echo";

/** The SDK's client at the gateway's door, and at `mcp-proxy`, in front of the same server. */
export type Way = "door" | "proxy";

/** What the caller's process is asked to do, and what came of it. */
export interface Order {
  way: Way;
  inFlight: number;
  durationMs: number;
}

export interface Report {
  p50Ms: number;
  perSecond: number;
}
