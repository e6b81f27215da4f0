import { Worker } from "node:worker_threads";
import type { WrittenLine } from "../../logs/log-line.ts";
import type { Host } from "./host.ts";
import { pipeLines } from "./output-lines.ts";

export interface ThreadOptions {
  file: string;
  url: string;
  heapBytes: number;
  startMs: number;
  graceMs: number;
  environment: Record<string, string>;
  host: Host;
  redact: (text: string) => string;
  /** Lines that belong to no call. */
  onLine: (line: WrittenLine) => void;
}

const THREAD = new URL("./thread.ts", import.meta.url);

/** There may be many, and what a module needs for long is in its old generation. */
const maxYoungGenerationSizeMb = 6;

/** Starts a thread that loads the module; it has nothing of the service's environment, and what it prints comes as lines. */
export function startThread(options: ThreadOptions, onPrint: (line: string) => void): Worker {
  const worker = new Worker(THREAD, {
    workerData: { url: options.url },
    env: options.environment,
    argv: [],
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: Math.ceil(options.heapBytes / 2 ** 20), maxYoungGenerationSizeMb },
  });
  for (const stream of [worker.stdout, worker.stderr]) pipeLines(stream, onPrint);
  return worker;
}
