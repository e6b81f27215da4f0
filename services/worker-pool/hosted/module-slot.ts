import { type Backoff, createBackoff } from "#runtime/time/retry/backoff.ts";
import { type BackoffTimes, CrashBackoff } from "../pool/crash-backoff.ts";
import type { Worker } from "../worker/worker.ts";
import type { DescribedTool } from "./process/module-form.ts";
import type { ModuleProcess } from "./process/open-module.ts";

/** A file of the directory as it stands. */
export type ModuleFile =
  | {
      kind: "offered";
      file: string;
      tools: readonly DescribedTool[];
      worker: Worker | undefined;
      callsTotal: number;
    }
  | { kind: "loading"; file: string }
  | { kind: "refused"; file: string; reason: string };

/** A module and its life, from file to file version. */
export interface ModuleSlot {
  file: string;
  state: { kind: "loading" } | { kind: "refused"; reason: string } | { kind: "ready"; process: ModuleProcess };
  callsTotal: number;
  crashes: CrashBackoff;
  /** When a module that keeps ending may be started again. */
  retryAtMs: number;
  /** Waits between the tries of a module that is refused. */
  backoff: Backoff;
  /** Ends the wait for the next try of a module that is refused. */
  endRetry: () => void;
  loading: Promise<void>;
}

export function createModuleSlot(file: string, times: BackoffTimes): ModuleSlot {
  return {
    file,
    state: { kind: "loading" },
    callsTotal: 0,
    crashes: new CrashBackoff(times),
    retryAtMs: 0,
    backoff: createBackoff({ initialMs: times.backoffMs, maxMs: times.maxBackoffMs }),
    endRetry() {},
    loading: Promise.resolve(),
  };
}

export function fileFromSlot({ file, state, callsTotal }: ModuleSlot): ModuleFile {
  if (state.kind === "ready") {
    const { worker, tools } = state.process;
    return { kind: "offered", file, tools, worker: worker.accepts ? worker : undefined, callsTotal };
  }
  return state.kind === "refused" ? { kind: "refused", file, reason: state.reason } : { kind: "loading", file };
}

/** Which start of the module it is: when its process was started, 0 without one. */
export function startOfModule(module: ModuleFile): number {
  return module.kind === "offered" ? (module.worker?.startedAtMs ?? 0) : 0;
}

/** A module that Node took for CommonJS fails at its first `import` or `export`, and not by its author's fault. */
export function reasonWithWayOut(reason: string): string {
  if (!/Unexpected token 'export'|Cannot use import statement/.test(reason)) return reason;
  return `${reason} (the package.json above it makes it CommonJS: put one with {"type":"module"} beside it, and save it again)`;
}
