import type { Load } from "../measuring/latencies.ts";

/** What the processes of the measurement agree on. */
export const AGENT = "measuring";
export const SESSION = "measured";
export const TOOL = "echo";
/** The sources of the agent: one echo behind each transport. */
export const SOURCES = { stdio: "over-stdio", http: "over-http" } as const;

/** Over the bus as a session calls, or by the SDK's own client at the same server. */
export type Way = `${"bus" | "sdk"}-${keyof typeof SOURCES}`;

export interface Order extends Load {
  readonly way: Way;
}
