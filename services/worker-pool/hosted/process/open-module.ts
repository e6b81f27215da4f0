import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { moduleBeside } from "#runtime/config/places.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import type { Confinement } from "#runtime/lifecycle/child-process/confinement.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { Worker, type WorkerOptions } from "../../worker/worker.ts";
import { type DescribedTool, INITIALIZE, toolsFrom } from "./module-form.ts";

export interface ModuleOptions extends Pick<WorkerOptions, "maxLineBytes" | "cancelGraceMs" | "redact" | "onLine"> {
  file: string;
  /** Of the module, without links. */
  path: string;
  heapBytes: number;
  startMs: number;
  environment: Record<string, string>;
  confinement: Confinement | undefined;
}

/** A process with one version of a hosted module. */
export interface ModuleProcess {
  readonly file: string;
  readonly worker: Worker;
  readonly tools: readonly DescribedTool[];
  /** Whether the module has something to do before its first call. */
  readonly initializes: boolean;
  /** Rejects with `failed_precondition` when the module's `initialize` throws or takes too long. */
  initialize(): Promise<void>;
  /** Ends it, with the module's `shutdown` as far as that comes in time. Calls in flight fail. */
  close(): Promise<void>;
}

const PROGRAM = fileURLToPath(moduleBeside(import.meta, "program"));
/** Frames go over descriptors 3 and 4. What the module prints goes to stderr, and is never taken for a frame. */
const SCRIPT = 'exec "$@" 3<&0 4>&1 </dev/null >&2';
/** There may be many, and what a module needs for long is in its old generation. */
const MAX_SEMI_SPACE_MIB = 2;
const SHUTDOWN_MS = 2_000;

/** Loads a module, and starts nothing of it yet. Rejects with `failed_precondition` and the reason. */
export async function openModule(options: ModuleOptions): Promise<ModuleProcess> {
  const { file, startMs } = options;
  const worker = await startModule(options);
  const close = () => worker.stop(`the module ${file} was ended: it was stopped`);
  async function started<T>(promise: Promise<T>, what: string): Promise<T> {
    if (await comesWithin(startMs, promise)) return promise;
    return refuse("failed_precondition", `the module ${file} ${what} ${startMs} ms`, { reason: "WORKER_START_FAILED" });
  }
  try {
    const { tools, initializes = false } = await started(worker.ready, "was not loaded within");
    return { file, worker, tools: toolsFrom(tools), initializes, initialize, close };
  } catch (error) {
    await close();
    throw error;
  }
  async function initialize(): Promise<void> {
    const request = {
      function: INITIALIZE,
      argumentsJson: "{}",
      configJson: "{}",
      secretsJson: "{}",
      idempotencyKey: "",
    };
    const listener = {
      onProgress() {},
      onLine: options.onLine,
      onAsk: () => Promise.reject(new Error("no call asks")),
    };
    const { answer } = worker.call(request, listener, new AbortController().signal);
    const answered = await started(answer, "was not initialized within");
    if (answered.kind === "error")
      refuse("failed_precondition", `initialize failed: ${answered.error}`, { reason: "WORKER_START_FAILED" });
  }
}

/** It has nothing of the service's environment. */
async function startModule(options: ModuleOptions): Promise<Worker> {
  const { file, path, heapBytes, maxLineBytes, environment, confinement } = options;
  const heapWords = [
    `--max-old-space-size=${Math.ceil(heapBytes / 2 ** 20)}`,
    `--max-semi-space-size=${MAX_SEMI_SPACE_MIB}`,
  ];
  const opened: { worker?: Worker } = {};
  const child = await openChildProcess({
    command: "/bin/sh",
    args: ["-c", SCRIPT, "sh", process.execPath, ...heapWords, PROGRAM, path],
    env: environment,
    cwd: dirname(path),
    confinement: confinement && { ...confinement, visible: [dirname(path), dirname(process.execPath)] },
    inputGraceMs: SHUTDOWN_MS,
    maxLineBytes: 2 * maxLineBytes, // a frame is a little more than its result
    onStderrLine: (line) => opened.worker?.readLogLine(line),
  });
  const hasOwnIds = confinement !== undefined;
  const worker = new Worker({
    ...options,
    child,
    name: `the module ${file}`,
    unloaded: "",
    hasOwnIds,
    endsByItself: true,
  });
  opened.worker = worker;
  return worker;
}
