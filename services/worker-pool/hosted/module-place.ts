import { refuse } from "#runtime/failure/failure.ts";
import { type Backoff, createBackoff } from "#runtime/time/retry/backoff.ts";
import type { RegisteredModule } from "./registry.ts";
import type { DescribedTool } from "./thread/messages.ts";
import type { ModuleThread } from "./thread/module-thread.ts";

/** A file of the directory as it stands. */
export type ModuleFile =
  | {
      kind: "offered";
      file: string;
      tools: readonly DescribedTool[];
      thread: ModuleThread | undefined;
      callsTotal: number;
    }
  | { kind: "loading"; file: string }
  | { kind: "refused"; file: string; reason: string };

/** A module and its life, from file to file version. */
export interface Place {
  file: string;
  state: { kind: "loading" } | { kind: "refused"; reason: string } | { kind: "ready"; module: LoadedModule };
  callsTotal: number;
  crashes: number;
  backoff: Backoff;
  retryAtMs: number;
  loading: Promise<void>;
}

export interface LoadedModule extends RegisteredModule {
  thread: ModuleThread;
}

/** So many ends in a row, with no answer between them, are met by starting again at once. */
const FREE_CRASHES = 2;

export function createPlace(file: string, times: { backoffMs: number; maxBackoffMs: number }): Place {
  return {
    file,
    state: { kind: "loading" },
    callsTotal: 0,
    crashes: 0,
    backoff: createBackoff({ initialMs: times.backoffMs, maxMs: times.maxBackoffMs }),
    retryAtMs: 0,
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
    const { thread, tools } = state.module;
    return { kind: "offered", file, tools, thread: thread.accepts ? thread : undefined, callsTotal };
  }
  return state.kind === "refused" ? { kind: "refused", file, reason: state.reason } : { kind: "loading", file };
}

/** Which start of the module it is: when its thread was started, 0 without one. */
export function startOfModule(module: ModuleFile): number {
  return module.kind === "offered" ? (module.thread?.startedAtMs ?? 0) : 0;
}

/** Throws `unavailable` while a module that keeps ending waits for its next start. */
export function refuseBackedOff({ file, retryAtMs }: Place): void {
  const leftMs = retryAtMs - Date.now();
  if (leftMs <= 0) return;
  refuse("unavailable", `the module ${file} keeps ending and is started again in ${leftMs} ms`, {
    reason: "WORKER_BACKED_OFF",
  });
}
