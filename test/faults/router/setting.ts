import type { BusLogin } from "#runtime/bus/credentials/login.ts";
import type { FaultTool } from "./check/history.ts";

export const agentName = "struck";

/** What the processes of a run agree on. An asynchronous tool has no caller whose time could end. */
export const tools: readonly FaultTool[] = [
  { name: "weigh", isAsync: false, effect: "pure", timeoutMs: 20_000 },
  { name: "charge", isAsync: false, effect: "at_most_once", timeoutMs: 20_000 },
  { name: "measure", isAsync: true, effect: "pure", timeoutMs: 0 },
  { name: "order", isAsync: true, effect: "at_most_once", timeoutMs: 0 },
  { name: "hurry", isAsync: false, effect: "at_most_once", timeoutMs: 1_500 },
];

/** The arguments of a call: which one it is, and how long its execution takes. */
export interface CallArguments {
  readonly number: number;
  readonly workMs: number;
}

/** One that is to be late takes longer than its caller waits. */
export const lateMs = 3_000;

export interface Login {
  readonly url: string;
  readonly login: BusLogin;
}

/** What the process of the watchers tells, in the order in which it happened to each. */
export type WatcherWord =
  | { kind: "ready" }
  | { kind: "handed"; watcher: string; stream: number; deliveryId: string; callId: string; atMs: number }
  | { kind: "executed"; watcher: string; deliveryId: string; callId: string; atMs: number }
  | { kind: "done"; watcher: string; callId: string; number: number }
  | { kind: "stream ended"; watcher: string; stream: number; atMs: number };

/** What the process of the submitters is asked to do. */
export interface SubmitOrder {
  readonly submitter: number;
  readonly callId: string;
  readonly resultJson: string;
}

export type SubmitterWord =
  | { kind: "ready" }
  | {
      kind: "submitted";
      callId: string;
      submitter: string;
      resultJson: string;
      end: "won" | "refused" | "unknown";
      why: string;
      atMs: number;
    };

export const peers = 10;
