import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { refuse } from "#runtime/failure/failure.ts";
import { type ChildProcessOptions, openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import type { ChildConfinement, Confinement } from "#runtime/lifecycle/child-process/confinement.ts";
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
export function openWorker(options: OpenWorkerOptions): Promise<Worker> {
  const { file, limits, environment, confinement, python, startTimeoutMs } = options;
  const cwd = dirname(file.path);
  return startWorker({
    ...options,
    child: { command: options.uv, args: commandLine(options), env: environment, cwd },
    confinement: confinement && { ...confinement, visible: [cwd, python] },
    name: `the worker of ${file.file}`,
    unloaded: `${file.file} cannot be imported: `,
    tooLate: `${file.file} was not imported within ${startTimeoutMs} ms`,
    digest: file.digest,
    maxLineBytes: limits.maxLineBytes,
  });
}

interface StartOptions
  extends Omit<WorkerOptions, "child" | "hasOwnIds">,
    Pick<OpenWorkerOptions, "startTimeoutMs" | "signal"> {
  child: ChildProcessOptions;
  confinement: ChildConfinement | undefined;
  /** What is said of one that is not loaded in its time. */
  tooLate: string;
}

/** Starts a process of a worker or of a module; resolves when it has loaded its file. */
export async function startWorker(options: StartOptions): Promise<Worker> {
  const { confinement, maxLineBytes, startTimeoutMs, signal, tooLate } = options;
  const opened: { worker?: Worker } = {};
  const child = await openChildProcess({
    ...options.child,
    confinement,
    maxLineBytes: 2 * maxLineBytes, // the other end keeps to the limit itself; a frame is a little more than its result
    onStderrLine: (line) => opened.worker?.readLogLine(line),
  });
  const worker = new Worker({ ...options, child, hasOwnIds: confinement !== undefined });
  opened.worker = worker;
  try {
    if (await unlessAborted(comesWithin(startTimeoutMs, worker.ready), signal)) return worker;
    return refuse("failed_precondition", tooLate, { reason: "WORKER_START_FAILED" });
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
