import type { Load } from "../measuring/latencies.ts";

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

export interface Order extends Load {
  readonly way: Way;
  readonly does: "call" | "list";
}
