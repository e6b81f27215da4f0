import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { until } from "#runtime/time/until.ts";

const execute = promisify(execFile);

/** Signals a process. One without an id does not run, and is refused: 0 would mean the group of whoever asks. */
export function signalProcess({ pid }: { readonly pid: number | undefined }, signal: NodeJS.Signals): void {
  if (pid === undefined || pid <= 0) throw new Error(`a process that does not run cannot get ${signal}`);
  process.kill(pid, signal);
}

/** Stops a process, and waits until none of its threads runs: they go on for a moment after the signal, and may answer meanwhile. */
export async function freezeProcess({ pid }: { readonly pid: number }): Promise<void> {
  signalProcess({ pid }, "SIGSTOP");
  await until(async () => (await statesOfThreads(pid)).every((state) => state === "T"), {
    what: `process ${pid} stopped`,
  });
}

async function statesOfThreads(pid: number): Promise<string[]> {
  const threads = await readdir(`/proc/${pid}/task`);
  const statOf = (thread: string) => readFile(`/proc/${pid}/task/${thread}/stat`, "utf8").catch(() => ""); // it has just ended
  const stats = await Promise.all(threads.map(statOf));
  return stats.map((stat) => stat.charAt(stat.lastIndexOf(")") + 2));
}

/** Whether there is such a process; one that has ended is there until its parent has read its end. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false; // there is none
  }
}

interface ListedProcess {
  readonly pid: number;
  readonly parent: number;
  readonly hasEnded: boolean;
}

async function listProcesses(): Promise<ListedProcess[]> {
  const { stdout } = await execute("ps", ["-A", "-o", "pid=,ppid=,stat="]);
  return stdout
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .map(([pid, parent, state = ""]) => ({
      pid: Number(pid),
      parent: Number(parent),
      hasEnded: state.startsWith("Z"),
    }));
}

/** All that the process has started, and what those have, at this moment. */
export async function descendantsOf(pid: number): Promise<number[]> {
  const processes = await listProcesses();
  const below = (parent: number): number[] =>
    processes.filter((entry) => entry.parent === parent).flatMap((entry) => [entry.pid, ...below(entry.pid)]);
  return below(pid);
}

/** Those of the processes that still run; one that has ended and waits to be read by its parent does not. */
export async function stillRunning(pids: readonly number[]): Promise<number[]> {
  const processes = await listProcesses();
  return processes.filter(({ pid, hasEnded }) => !hasEnded && pids.includes(pid)).map(({ pid }) => pid);
}

/** Waits until none of them runs: the watchdog of a process looks for what that has left, and then ends itself. */
export async function untilEnded(pids: readonly number[]): Promise<void> {
  const areEnded = async () => (await stillRunning(pids)).length === 0;
  await until(areEnded, { timeoutMs: 40_000, what: "all processes to have ended" });
}
