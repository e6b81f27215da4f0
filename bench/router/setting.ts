/** What the processes of the measurement agree on. */
export const TOOL = "measured";
export const AGENT = "measuring";

/** A tool that nobody executes, and one that a provider on the bus does. */
export const INTERNAL_TOOL = "echoed";
export const PROVIDER = "measured-provider";
export const SOURCE = "measured-source";
export const PROVIDER_TOOL = "answered";

/** Two routers, each reached by its own name: who calls and who watches never meet the same one. */
export const CALLERS_ROUTER = "tool-router.callers";
export const WATCHERS_ROUTER = "tool-router.watchers";

/** Answered with what it was asked, by the process that watches: what the bus alone costs between the two. */
export const RAW_SUBJECT = "toolbus.bench.router";

/**
 * What the caller's process is asked to do. With `perSecond`, calls begin at that pace, as long as fewer than `inFlight` are
 * under way; without it one begins whenever another ends.
 */
export interface Order {
  way: "call" | "internal" | "provider" | "raw";
  calls: number;
  inFlight: number;
  perSecond?: number;
}

export interface Report {
  /** How long each call took, from the moment at which it was to begin. */
  latenciesMs: number[];
  tookMs: number;
}
