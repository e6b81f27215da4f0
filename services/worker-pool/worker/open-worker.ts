import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { refuse } from "#runtime/failure/failure.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import type { Confinement } from "#runtime/lifecycle/child-process/confinement.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { WorkerLimits } from "../config.ts";
import type { OfferedFile } from "../files/tool-file.ts";
import { Worker, type WorkerOptions } from "./worker.ts";

export interface OpenWorkerOptions extends Pick<WorkerOptions, "cancelGraceMs" | "redact" | "onLine" | "onIdle"> {
  uv: string;
  /** The Python of the file's environment. */
  python: string;
  file: OfferedFile;
  limits: WorkerLimits;
  confinement: Confinement | undefined;
  environment: Record<string, string>;
  startTimeoutMs: number;
  /** Gives the start up. */
  signal: AbortSignal;
}

const SDK = fileURLToPath(new URL("../../../sdk/python/toolbus_sdk", import.meta.url));

/** Starts a worker; resolves when it has imported its file. Throws `failed_precondition` with the reason when it cannot. */
export async function openWorker(options: OpenWorkerOptions): Promise<Worker> {
  const { file, limits, startTimeoutMs } = options;
  const opened: { worker?: Worker } = {};
  const child = await openChildProcess({
    command: options.uv,
    args: commandLine(options),
    env: options.environment,
    cwd: dirname(file.path),
    confinement: options.confinement && { ...options.confinement, visible: [dirname(file.path), options.python] },
    maxLineBytes: 2 * limits.maxLineBytes, // the SDK keeps to the limit itself; a frame is a little more than its result
    onStderrLine: (line) => opened.worker?.readLogLine(line),
  });
  const { maxLineBytes } = limits;
  const hasOwnIds = options.confinement !== undefined;
  const name = `the worker of ${file.file}`;
  const unloaded = `${file.file} cannot be imported: `;
  const worker = new Worker({ ...options, hasOwnIds, child, name, unloaded, digest: file.digest, maxLineBytes });
  opened.worker = worker;
  try {
    const isReady = await unlessAborted(comesWithin(startTimeoutMs, worker.ready), options.signal);
    if (isReady) return worker;
    const message = `${file.file} was not imported within ${startTimeoutMs} ms`;
    return refuse("failed_precondition", message, { reason: "WORKER_START_FAILED" });
  } catch (error) {
    await worker.stop("it did not start");
    throw error;
  }
}

/** `uv run` in the environment of the script; nothing is left to install, so nothing is asked of the network. */
function commandLine({ python, file, limits }: OpenWorkerOptions): string[] {
  const uvWords = ["run", "--quiet", "--no-project", "--no-config", "--no-env-file", "--offline", "--python", python];
  const limitWords = [
    `--threads=${limits.calls}`,
    `--max-line-bytes=${limits.maxLineBytes}`,
    `--memory-bytes=${limits.memoryBytes}`,
    `--processor-seconds=${limits.processorSeconds}`,
  ];
  return [...uvWords, "python", "-X", "utf8", SDK, ...limitWords, file.path];
}
