import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { moduleBeside } from "#runtime/config/places.ts";
import { Failure, refuse } from "#runtime/failure/failure.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import type { ToolFunction } from "../../files/tool-file.ts";
import { type OpenWorkerOptions, startWorker } from "../../worker/open-worker.ts";
import type { Worker } from "../../worker/worker.ts";
import { INITIALIZE, toolsFrom } from "./module-form.ts";

export interface ModuleOptions extends Omit<OpenWorkerOptions, "uv" | "python" | "limits"> {
  maxLineBytes: number;
  heapBytes: number;
  /** Called with what the module offers, before it is initialized. Throws when another module offers it. */
  claim: (tools: readonly ToolFunction[]) => void;
}

const PROGRAM = fileURLToPath(moduleBeside(import.meta, "program"));
/** Frames go over descriptors 3 and 4. What the module prints goes to stderr, and is never taken for a frame. */
const SCRIPT = 'exec "$@" 3<&0 4>&1 </dev/null >&2';
/** There may be many, and what a module needs for long is in its old generation. */
const MAX_SEMI_SPACE_MIB = 2;
const SHUTDOWN_MS = 2_000;

/**
 * Starts a module, with nothing of the service's environment; resolves when it is initialized. Rejects with `failed_precondition` and
 * the reason when it cannot.
 */
export async function openModule(options: ModuleOptions): Promise<Worker> {
  const { file, environment, confinement, startTimeoutMs } = options;
  const cwd = dirname(file.path);
  const name = `the module ${file.file}`;
  const worker = await startWorker({
    ...options,
    child: { command: "/bin/sh", args: commandLine(options), env: environment, cwd, inputGraceMs: SHUTDOWN_MS },
    confinement: confinement && { ...confinement, visible: [cwd, dirname(process.execPath)] },
    name,
    unloaded: "",
    tooLate: `${name} was not loaded within ${startTimeoutMs} ms`,
    digest: file.digest,
    isModule: true,
  });
  try {
    const { tools, initializes } = await worker.ready;
    options.claim(toolsFrom(tools));
    if (initializes) await initialize(worker, name, options);
    return worker;
  } catch (error) {
    await worker.stop("it did not start");
    if (!(error instanceof Failure) || error.reason !== "WORKER_CRASHED") throw error;
    const { detail: cause } = await worker.ended; // of its start: no call was begun
    throw new Failure("failed_precondition", error.message, { reason: "WORKER_START_FAILED", cause });
  }
}

async function initialize(worker: Worker, name: string, options: ModuleOptions): Promise<void> {
  const { startTimeoutMs, signal, onLine } = options;
  const none = { argumentsJson: "{}", configJson: "{}", secretsJson: "{}", idempotencyKey: "" };
  const listener = { onProgress() {}, onLine, onAsk: () => Promise.reject(new Error("no call asks")) };
  const { answer } = worker.call({ ...none, function: INITIALIZE }, listener, signal);
  const isInTime = await comesWithin(startTimeoutMs, answer);
  const answered = isInTime ? await answer : undefined;
  if (answered?.kind === "result") return;
  const words = answered
    ? `initialize failed: ${answered.error}`
    : `${name} was not initialized within ${startTimeoutMs} ms`;
  refuse("failed_precondition", words, { reason: "WORKER_START_FAILED" });
}

function commandLine({ file, heapBytes }: ModuleOptions): string[] {
  const heapWords = [
    `--max-old-space-size=${Math.ceil(heapBytes / 2 ** 20)}`,
    `--max-semi-space-size=${MAX_SEMI_SPACE_MIB}`,
  ];
  return ["-c", SCRIPT, "sh", process.execPath, ...heapWords, PROGRAM, file.path];
}
