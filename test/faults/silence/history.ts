/** One of two instances that was frozen, or cut off. Times are those of `performance.now()`. */
export interface Strike {
  readonly kind: "freeze" | "cut";
  readonly instance: string;
  readonly fromMs: number;
  readonly toMs: number;
}

export type ToolName = "pure" | "at_most_once";

/** A call as its client saw it over the gateway, which asked once. */
export interface ClientCall {
  readonly key: string;
  readonly tool: ToolName;
  readonly fromMs: number;
  readonly toMs: number;
  /** What the client was told; `fault` is an error of the tool or of the call. */
  readonly told: { kind: "result"; key: string } | { kind: "fault"; text: string };
  /** How often it happened. */
  readonly effects: number;
}

export interface SilenceHistory {
  readonly strikes: readonly Strike[];
  readonly calls: readonly ClientCall[];
}

export interface Violation {
  readonly rule: string;
  readonly key: string;
  readonly what: string;
}
