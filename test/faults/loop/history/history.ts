import type { RunDelta, RunEvent, RunTextReplaced } from "#gen/toolbus/run/v1/run_event_pb.ts";

/** What a tool promises about its effect (LOOP-14). */
export type EffectClass = "pure" | "idempotent" | "at_most_once";

/** The outside world was changed. Times are those of one clock, in milliseconds. */
export interface Effect {
  readonly tool: string;
  /** Made by the model, of one call of one of its answers. */
  readonly key: string;
  /** The key that the router sent with it. */
  readonly idempotencyKey: string;
  readonly atMs: number;
}

export type Seen =
  | { readonly kind: "event"; readonly event: RunEvent }
  | { readonly kind: "delta"; readonly delta: RunDelta }
  | { readonly kind: "replaced"; readonly replaced: RunTextReplaced };

/** What one client saw of a run, over all its connections. */
export interface Watched {
  readonly name: string;
  readonly fromSequence: number;
  readonly seen: readonly Seen[];
  /** Whether its stream came to an orderly end. */
  readonly hasEnded: boolean;
  /** What ended it, if that is nothing that a client bears with. */
  readonly error?: string | undefined;
}

export interface PromptMessage {
  readonly role: string;
  readonly callIds: readonly string[];
  /** Of a tool's answer. */
  readonly answersCallId: string;
}

/** What a client gave to a call of its own. */
export interface Output {
  readonly callId: string;
  readonly outputJson: string;
}

/** All that is known of one run from outside, and its log. */
export interface RunHistory {
  readonly runId: string;
  /** The ids that its creator was told, in all answers to its one key. */
  readonly toldIds: readonly string[];
  readonly events: readonly RunEvent[];
  /** The claim under which each of them was written. */
  readonly epochs: readonly number[];
  /** How many events the log has when everything is over. */
  readonly eventCountAtLast: number;
  readonly effects: readonly Effect[];
  readonly classesByTool: ReadonlyMap<string, EffectClass>;
  readonly watched: readonly Watched[];
  /** What the model was asked, in the order of the requests. */
  readonly prompts: readonly (readonly PromptMessage[])[];
  /** When the client was told that the run is canceled. */
  readonly canceledAtMs?: number | undefined;
  /** The outputs that the client was told are stored. */
  readonly acknowledged: readonly Output[];
  /** Refusals of requests that had to be granted. */
  readonly refusals: readonly string[];
}

/** A promise that was broken. */
export interface Violation {
  readonly rule: string;
  readonly what: string;
}
