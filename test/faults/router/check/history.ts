/** What a call of a tool may do, as the catalogue says it. */
export interface FaultTool {
  readonly name: string;
  readonly isAsync: boolean;
  readonly effect: "pure" | "at_most_once";
  readonly timeoutMs: number;
}

/** All times are the machine's, in milliseconds since the epoch. */
interface Handing {
  readonly watcher: string;
  /** Counts the streams of the watcher. */
  readonly stream: number;
  readonly deliveryId: string;
  readonly atMs: number;
}

/** A watcher was told that the call is its own, and executed it. */
interface Execution {
  readonly watcher: string;
  readonly deliveryId: string;
  readonly atMs: number;
}

/**
 * What a submitter was told: that it won, or why not. `unknown` never heard anything.
 */
export interface Submission {
  readonly submitter: string;
  readonly resultJson: string;
  readonly end: "won" | "refused" | "unknown";
  readonly why: string;
  readonly atMs: number;
}

export interface CallerAnswer {
  readonly outputJson: string;
  readonly isError: boolean;
  readonly atMs: number;
  /** When the attempt began that was answered. */
  readonly attemptAtMs: number;
}

export interface StandingRecord {
  readonly state: "open" | "started" | "resolved" | "expired" | "canceled";
  readonly outputJson: string;
  readonly isError: boolean;
  readonly isLate: boolean;
}

/** Everything that anybody outside of the routers saw of a call. */
export interface CallHistory {
  readonly callId: string;
  readonly tool: FaultTool;
  readonly number: number;
  readonly attempts: number;
  readonly answer: CallerAnswer | undefined;
  /** The error with which the caller gave up; empty when it has an answer. */
  readonly failure: string;
  readonly handings: readonly Handing[];
  readonly executions: readonly Execution[];
  readonly submissions: readonly Submission[];
  readonly record: StandingRecord | undefined;
  /** The results in the inbox under the call's id. */
  readonly inbox: readonly string[];
}

/** A router was killed, or stood still: because it was frozen, or because the machine had no time for it. */
export interface Strike {
  readonly kind: "kill" | "freeze" | "starved";
  readonly router: string;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface EndedStream {
  readonly watcher: string;
  readonly stream: number;
  readonly atMs: number;
}

export interface RouterHistory {
  readonly calls: readonly CallHistory[];
  readonly strikes: readonly Strike[];
  readonly endedStreams: readonly EndedStream[];
}

export interface Violation {
  readonly rule: string;
  readonly callId: string;
  readonly what: string;
}
