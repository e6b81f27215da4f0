import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { moduleBeside } from "#runtime/config/places.ts";
import { type ChildProcess, openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import type { Confinement } from "#runtime/lifecycle/child-process/confinement.ts";
import type { WrittenLine } from "../../logs/log-line.ts";
import type { Host } from "./host.ts";

export interface ProcessOptions {
  file: string;
  /** Of the module, without links. */
  path: string;
  heapBytes: number;
  /** Of one message, to the module or from it. */
  maxLineBytes: number;
  startMs: number;
  graceMs: number;
  environment: Record<string, string>;
  confinement: Confinement | undefined;
  host: Host;
  redact: (text: string) => string;
  /** Lines that belong to no call. */
  onLine: (line: WrittenLine) => void;
}

const PROGRAM = fileURLToPath(moduleBeside(import.meta, "program"));

/** Messages go over descriptors 3 and 4. What the module prints goes to stderr, and is never taken for a message. */
const SCRIPT = 'exec "$@" 3<&0 4>&1 </dev/null >&2';

/** There may be many, and what a module needs for long is in its old generation. */
const MAX_SEMI_SPACE_MIB = 2;

/** Starts a process that loads the module; it has nothing of the service's environment, and what it prints comes as lines. */
export function startProcess(options: ProcessOptions, onPrint: (line: string) => void): Promise<ChildProcess> {
  const { path, heapBytes, maxLineBytes, environment, confinement } = options;
  const heapWords = [
    `--max-old-space-size=${Math.ceil(heapBytes / 2 ** 20)}`,
    `--max-semi-space-size=${MAX_SEMI_SPACE_MIB}`,
  ];
  const visible = [dirname(path), dirname(process.execPath)];
  return openChildProcess({
    command: "/bin/sh",
    args: ["-c", SCRIPT, "sh", process.execPath, ...heapWords, PROGRAM, path],
    env: environment,
    cwd: dirname(path),
    confinement: confinement && { ...confinement, visible },
    maxLineBytes,
    onStderrLine: onPrint,
  });
}
