// The one place for child processes. What holds for each of them:
//
// child-1  It leads a process group of its own, and every signal goes to the whole group.
// child-2  When it exits, for whatever reason, what is left of its group is killed. A descendant that has left the group for a
//     session of its own carries the child's mark (`marked.ts`) and is killed by it, unless it has wiped its
//     environment. Of a confined child nothing is left in any case.
// child-3  Its end is `exit`, not `close`: a descendant that holds its stdout delays nothing.
// child-4  Its stderr is drained from the first moment on.
// child-5  It dies with this process, even on SIGKILL (`watchdog.ts`).

import { platformEnvironment } from "../../config/platform-environment.ts";
import { executableFromCommand } from "./command.ts";
import { type ChildConfinement, confined } from "./confinement.ts";
import type { ChildExit } from "./exit.ts";
import { type ResourceLimits, spawnGated } from "./gate.ts";
import { GroupEnd } from "./group-end.ts";
import { createInput, type Input } from "./input.ts";
import { type LinesOptions, readChunks, readLines } from "./lines.ts";
import { openMark } from "./marked.ts";
import { holdOutput } from "./output.ts";
import { drainStderr } from "./stderr.ts";

export type { ResourceLimits };

export interface ChildProcessOptions {
  /** A path, or a name that is looked for on the `PATH` of `env`. */
  command: string;
  args?: readonly string[];
  /** The whole environment of the child; the platform's variables unless told. Names that no shell can hold, like `a.b`, are left out. */
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  limits?: ResourceLimits;
  /** How long closing waits after the end of stdin, and then after SIGTERM; 1 s and 2 s unless told. */
  inputGraceMs?: number;
  terminationGraceMs?: number;
  onStderrLine?: (line: string) => void;
  /** Told of stderr as it comes. */
  onStderr?: (chunk: Buffer) => void;
  /** What the child cannot see and do (`confinement.ts`); unless told, it has all rights of this user. */
  confinement?: ChildConfinement | undefined;
  /** A longer line of stdout ends `lines()` with an error; 128 MiB unless told. */
  maxLineBytes?: number;
  /** Closes the child when it aborts. */
  signal?: AbortSignal;
}

export interface ChildProcess extends AsyncDisposable {
  /** The process, and by the same number its group. */
  readonly pid: number;
  /** Resolves when the process has exited and its group is killed; never rejects. */
  readonly exited: Promise<ChildExit>;
  readonly hasExited: boolean;
  /** Each line of stdout, at the pace of its one reader; ends when stdout does, or soon after the exit if that is held open. */
  lines(options?: Pick<LinesOptions, "wholeOnly">): AsyncIterable<string>;
  /** Stdout as it comes, instead of `lines()`. */
  output(): AsyncIterable<Buffer>;
  write: Input["write"];
  endInput: Input["end"];
  stderrTail(): string;
  /** Ends stdin, waits, SIGTERM to the group, waits, SIGKILL to the group. Any number of calls make one closing. */
  close(): Promise<ChildExit>;
  /** SIGKILL to the group, at once. */
  kill(): Promise<ChildExit>;
}

/**
 * Starts a program. Throws `not_found` when there is no such program or working directory, `unavailable` when the
 * machine cannot start it.
 */
export async function openChildProcess(options: ChildProcessOptions): Promise<ChildProcess> {
  const { args = [], cwd = process.cwd(), limits = {}, maxLineBytes, confinement } = options;
  const mark = confinement ? undefined : openMark();
  const env = { ...(options.env ?? platformEnvironment()), ...(mark && { [mark.name]: mark.value }) };
  options.signal?.throwIfAborted();
  const executable = executableFromCommand(options.command, { cwd, path: env.PATH });
  const command = { executable, args, cwd, env, limits };
  const child = await spawnGated(confinement ? confined(command, confinement) : command);

  const { pid, stdin, stdout, stderr } = child;
  const input = createInput(stdin, () => `${options.command} (process ${pid})`);
  const stderrTail = drainStderr(stderr, { onLine: options.onStderrLine, onChunk: options.onStderr }); // child-4
  holdOutput(stdout);
  const { inputGraceMs = 1_000, terminationGraceMs = 2_000 } = options;
  const end = new GroupEnd(child, { endInput: input.end, stderrTail, mark, inputGraceMs, terminationGraceMs });
  const close = () => end.close();
  closeOnAbort(options.signal, close, end.exited);

  return {
    pid,
    exited: end.exited,
    get hasExited() {
      return end.hasExited;
    },
    lines: (lines = {}) => readLines(stdout, { maxLineBytes, ...lines }),
    output: () => readChunks(stdout),
    write: input.write,
    endInput: input.end,
    stderrTail,
    close,
    kill: () => end.kill(),
    async [Symbol.asyncDispose]() {
      await close();
    },
  };
}

function closeOnAbort(signal: AbortSignal | undefined, close: () => void, exited: Promise<unknown>): void {
  if (!signal) return;
  signal.addEventListener("abort", close, { once: true });
  void exited.then(() => signal.removeEventListener("abort", close));
}
