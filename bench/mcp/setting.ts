/** What the processes of the measurement agree on. */
export const AGENT = "measuring";
export const SESSION = "measured";
export const TOOL = "echo";
/** The sources of the agent: one echo behind each transport. */
export const SOURCES = { stdio: "over-stdio", http: "over-http" } as const;

/** Over the bus as a session calls, or by the SDK's own client at the same server. */
export type Way = `${"bus" | "sdk"}-${keyof typeof SOURCES}`;

/** What the caller's process is asked to do, and what came of it. */
export interface Order {
  way: Way;
  inFlight: number;
  durationMs: number;
}

export interface Report {
  p50Ms: number;
}
