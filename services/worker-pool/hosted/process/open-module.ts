import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { moduleBeside } from "#runtime/config/places.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import type { Confinement } from "#runtime/lifecycle/child-process/confinement.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { OfferedFile, ToolFunction } from "../../files/tool-file.ts";
import type { OpenWorkerOptions } from "../../worker/open-worker.ts";
import { Worker } from "../../worker/worker.ts";
import { INITIALIZE, toolsFrom } from "./module-form.ts";

export interface ModuleOptions
  extends Pick<OpenWorkerOptions, "cancelGraceMs" | "redact" | "onLine" | "onIdle" | "signal"> {
  /** Its path is without links. */
  file: OfferedFile;
  maxLineBytes: number;
  heapBytes: number;
  startMs: number;
  environment: Record<string, string>;
  confinement: Confinement | undefined;
  /** Called with what the module offers, before it is initialized. Throws when another module offers it. */
  claim: (tools: readonly ToolFunction[]) => void;
}

const PROGRAM = fileURLToPath(moduleBeside(import.meta, "program"));
/** Frames go over descriptors 3 and 4. What the module prints goes to stderr, and is never taken for a frame. */
const SCRIPT = 'exec "$@" 3<&0 4>&1 </dev/null >&2';
/** There may be many, and what a module needs for long is in its old generation. */
const MAX_SEMI_SPACE_MIB = 2;
const SHUTDOWN_MS = 2_000;

/** Starts a module; resolves when it is initialized. Rejects with `failed_precondition` and the reason when it cannot. */
export async function openModule(options: ModuleOptions): Promise<Worker> {
  const { startMs, signal } = options;
  const name = `the module ${options.file.file}`;
  const worker = await startModule(options, name);
  async function started<T>(promise: Promise<T>, what: string): Promise<T> {
    if (await unlessAborted(comesWithin(startMs, promise), signal)) return promise;
    return refuse("failed_precondition", `${name} ${what} ${startMs} ms`, { reason: "WORKER_START_FAILED" });
  }
  try {
    const { tools, initializes } = await started(worker.ready, "was not loaded within");
    options.claim(toolsFrom(tools));
    if (initializes) await initialize();
    return worker;
  } catch (error) {
    await worker.stop("it did not start");
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
    const { answer } = worker.call(request, listener, signal);
    const answered = await started(answer, "was not initialized within");
    if (answered.kind === "error")
      refuse("failed_precondition", `initialize failed: ${answered.error}`, { reason: "WORKER_START_FAILED" });
  }
}

/** It has nothing of the service's environment. */
async function startModule(options: ModuleOptions, name: string): Promise<Worker> {
  const { path } = options.file;
  const { heapBytes, maxLineBytes, environment, confinement } = options;
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
    name,
    digest: options.file.digest,
    unloaded: "",
    hasOwnIds,
    endsByItself: true,
  });
  opened.worker = worker;
  return worker;
}
