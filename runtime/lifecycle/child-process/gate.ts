import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Socket } from "node:net";
import { getPriority, setPriority } from "node:os";
import type { Readable, Writable } from "node:stream";
import { type Failure, messageFromUnknown } from "../../failure/failure.ts";
import { LocalFailure } from "../../failure/local-failure.ts";
import { exitOfConfined, INFO_DESCRIPTOR } from "./confinement.ts";
import { watchGroup } from "./watchdog.ts";

export interface ResourceLimits {
  /** Of its address space, each process of the child by itself (`ulimit -v`). */
  memoryBytes?: number;
  /** Of processor time, each process of the child by itself (`ulimit -t`). */
  processorSeconds?: number;
}

export interface GatedCommand {
  /** An absolute path. */
  executable: string;
  args: readonly string[];
  cwd: string;
  env: NodeJS.ProcessEnv;
  limits: ResourceLimits;
  /** Whether the program tells on descriptor 4 which process leads the group of what it starts, as `bwrap` does. */
  isConfining?: boolean;
}

/** Waits for a word on descriptor 3, then becomes the program; without the word it goes. */
const SCRIPT = `
[ -z "$1" ] || ulimit -v "$1" || exit 125
[ -z "$2" ] || ulimit -t "$2" || exit 125
shift 2
read -r word <&3 || exit 125
exec 3<&-
exec "$@"
`;

/** What is added to the niceness of the service, up to the most that there is. */
const NICER_BY = 5;
const NICEST = 19;

export interface GatedProcess {
  pid: number;
  stdin: Writable;
  stdout: Readable;
  stderr: Readable;
  exit: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** The group that a confined program is in; undefined until it runs, and for one that is not confined. */
  innerGroup(): number | undefined;
}

/**
 * Starts the program as the leader of a session and a process group of its own, whose id is its `pid`. The program
 * runs only once the watchdog knows the group (watchdog-3 in `watchdog.ts`). Throws `unavailable` when no process can be started.
 */
export async function spawnGated(command: GatedCommand): Promise<GatedProcess> {
  const { executable, args, cwd, env, limits, isConfining = false } = command;
  const kibibytes = limits.memoryBytes === undefined ? "" : String(Math.ceil(limits.memoryBytes / 1024));
  const seconds = limits.processorSeconds === undefined ? "" : String(limits.processorSeconds);
  const child = spawn("/bin/sh", ["-c", SCRIPT, "sh", kibibytes, seconds, executable, ...args], {
    cwd,
    env,
    detached: true,
    stdio: ["pipe", "pipe", "pipe", "pipe", ...(isConfining ? (["pipe"] as const) : [])],
  });
  const { pid, stdin, stdout, stderr } = child;
  const gate = child.stdio[3];
  if (pid === undefined || !stdin || !stdout || !stderr || !(gate instanceof Socket))
    throw await startFailure(child, executable);
  const exit = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once("exit", (code, signal) => resolve(isConfining ? exitOfConfined({ code, signal }) : { code, signal }));
  });
  child.on("error", () => {}); // after a start only signals can fail, and those go to the group by another way
  watchGroup(pid);
  giveWay(pid);
  gate.on("error", () => {}); // a gate that was killed before it opened is reported by its exit
  gate.end("go\n", () => gate.destroy());
  return { pid, stdin, stdout, stderr, exit, innerGroup: readInnerGroup(child.stdio[INFO_DESCRIPTOR]) };
}

/** What a tool computes costs the services no time that they want (SEC-5); where a machine is idle, it makes no difference. */
function giveWay(pid: number): void {
  try {
    setPriority(pid, Math.min(getPriority() + NICER_BY, NICEST));
  } catch {
    // it has ended, which is reported by its exit
  }
}

function readInnerGroup(info: unknown): () => number | undefined {
  let text = "";
  if (info instanceof Socket) {
    info.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    info.on("error", () => {}); // what is not told is not known
  }
  return () => {
    const [, pid] = /"child-pid":\s*(\d+)/.exec(text) ?? [];
    return pid === undefined ? undefined : Number(pid);
  };
}

async function startFailure(child: ChildProcess, executable: string): Promise<Failure> {
  const [cause]: unknown[] = await once(child, "error").catch((error: unknown) => [error]);
  return new LocalFailure("unavailable", `cannot start ${executable}: ${messageFromUnknown(cause)}`, { cause });
}
