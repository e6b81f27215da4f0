export type StrikeKind =
  | "freeze"
  | "cut"
  | "break"
  | "stop"
  | "clock"
  | "silence of all"
  | "large"
  | "disk"
  | "node"
  | "nodes";

/** What was done to whom. Times are those of `performance.now()`. */
export interface Strike {
  readonly kind: StrikeKind;
  readonly instance: string;
  readonly fromMs: number;
  readonly toMs: number;
  /** When all was well again, as far as the run can know: after a broker is back, its clients need some time. */
  readonly wellAtMs: number;
  /** The most memory that each service had in large calls, by instance. */
  readonly rssBytes?: Readonly<Record<string, number>>;
}

/** Tools by where they are executed, and by what their calls do. */
export const toolNames = [
  "hosted_pure",
  "hosted_at_most_once",
  "mcp_pure",
  "mcp_at_most_once",
  "http_pure",
  "http_at_most_once",
  "agent",
] as const;

export type ToolName = (typeof toolNames)[number];

/** A call as its client saw it over the gateway, which asked once. */
export interface ClientCall {
  readonly key: string;
  readonly tool: ToolName;
  /** One of the twelve with very large arguments. */
  readonly isLarge?: boolean;
  readonly fromMs: number;
  readonly toMs: number;
  /** What the client was told; `fault` is an error of the tool or of the call. */
  readonly told: { kind: "result"; key: string } | { kind: "fault"; text: string };
  /** How often it happened. */
  readonly effects: number;
}

/** What `/healthz` said. */
export interface Health {
  readonly atMs: number;
  readonly status: number;
  readonly text: string;
}

/** The process of the run stood still, and perhaps others: the machine had no time for them. */
export interface Stall {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface OutageHistory {
  readonly strikes: readonly Strike[];
  readonly calls: readonly ClientCall[];
  readonly health: readonly Health[];
  readonly stalls: readonly Stall[];
}

export interface Violation {
  readonly rule: string;
  readonly key: string;
  readonly what: string;
}
