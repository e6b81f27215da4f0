import { refuse } from "#runtime/failure/failure.ts";
import { type Backoff, createBackoff } from "#runtime/time/retry/backoff.ts";
import type { DescribedTool } from "./process/messages.ts";
import type { ModuleProcess } from "./process/module-process.ts";

/** A file of the directory as it stands. */
export type ModuleFile =
  | {
      kind: "offered";
      file: string;
      tools: readonly DescribedTool[];
      process: ModuleProcess | undefined;
      callsTotal: number;
    }
  | { kind: "loading"; file: string }
  | { kind: "refused"; file: string; reason: string };

/** A module and its life, from file to file version. */
export interface Place {
  file: string;
  state: { kind: "loading" } | { kind: "refused"; reason: string } | { kind: "ready"; process: ModuleProcess };
  callsTotal: number;
  /** Calls that wait for a process. */
  callers: number;
  crashes: number;
  backoff: Backoff;
  retryAtMs: number;
  /** Ends the wait for the next try of a module that is refused. */
  endRetry: () => void;
  loading: Promise<void>;
}

/** So many ends in a row, with no answer between them, are met by starting again at once. */
const FREE_CRASHES = 2;

export function createPlace(file: string, times: { backoffMs: number; maxBackoffMs: number }): Place {
  return {
    file,
    state: { kind: "loading" },
    callsTotal: 0,
    callers: 0,
    crashes: 0,
    backoff: createBackoff({ initialMs: times.backoffMs, maxMs: times.maxBackoffMs }),
    retryAtMs: 0,
    endRetry() {},
    loading: Promise.resolve(),
  };
}

/** What ended before is over. */
export function noteAnswer(place: Place): void {
  place.crashes = 0;
  place.backoff.reset();
}

export function noteCrash(place: Place): void {
  place.crashes += 1;
  place.retryAtMs = place.crashes > FREE_CRASHES ? Date.now() + place.backoff.next() : 0;
}

export function fileFromPlace({ file, state, callsTotal }: Place): ModuleFile {
  if (state.kind === "ready") {
    const { process } = state;
    return { kind: "offered", file, tools: process.tools, process: process.accepts ? process : undefined, callsTotal };
  }
  return state.kind === "refused" ? { kind: "refused", file, reason: state.reason } : { kind: "loading", file };
}

/** Which start of the module it is: when its process was started, 0 without one. */
export function startOfModule(module: ModuleFile): number {
  return module.kind === "offered" ? (module.process?.startedAtMs ?? 0) : 0;
}

/** Throws `unavailable` while a module that keeps ending waits for its next start. */
export function refuseBackedOff({ file, retryAtMs }: Place): void {
  const leftMs = retryAtMs - Date.now();
  if (leftMs <= 0) return;
  refuse("unavailable", `the module ${file} keeps ending and is started again in ${leftMs} ms`, {
    reason: "WORKER_BACKED_OFF",
  });
}

/** A module that Node took for CommonJS fails at its first `import` or `export`, and not by its author's fault. */
export function reasonWithWayOut(reason: string): string {
  if (!/Unexpected token 'export'|Cannot use import statement/.test(reason)) return reason;
  return `${reason} (the package.json above it makes it CommonJS: put one with {"type":"module"} beside it, and save it again)`;
}
