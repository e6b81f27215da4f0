import { execFile } from "node:child_process";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** Signals a process. One without an id does not run, and is refused: 0 would mean the group of whoever asks. */
export function signalProcess({ pid }: { readonly pid: number | undefined }, signal: NodeJS.Signals): void {
  if (pid === undefined || pid <= 0) throw new Error(`a process that does not run cannot get ${signal}`);
  process.kill(pid, signal);
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
