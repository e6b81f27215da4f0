import { randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { isErrno } from "../../failure/errno.ts";

/** A variable that a child and all that it starts carry in their environment, to find by it what leaves the child's group. */
export interface Mark {
  readonly name: string;
  readonly value: string;
}

const NAME = "TOOLBUS_CHILD";
const ownId = randomUUID();
let opened = 0;

/** What the assignments of all marks of this process begin with. */
export const ASSIGNED = `${NAME}=${ownId}.`;

export function openMark(): Mark {
  opened += 1;
  return { name: NAME, value: `${ownId}.${opened}` };
}

/** Whoever starts processes faster than they are killed is given up after so many rounds. */
const MAX_ROUNDS = 50;

/**
 * Kills every process that carries the mark, also in sessions of their own; on Linux, elsewhere it finds none. One that has
 * wiped its environment is not found.
 */
export async function killMarked(mark: Mark): Promise<void> {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const pids = await findMarked(mark);
    if (pids.length === 0) return;
    for (const pid of pids) killProcess(pid);
  }
}

async function findMarked({ name, value }: Mark): Promise<number[]> {
  const entries = await readdir("/proc").catch(() => []); // no Linux
  const pids = entries.filter((entry) => /^\d+$/.test(entry));
  const marked = await Promise.all(pids.map((pid) => carries(pid, `${name}=${value}`)));
  return pids.filter((_, index) => marked[index]).map(Number);
}

async function carries(pid: string, assignment: string): Promise<boolean> {
  try {
    // of a process that has ended and waits for its parent, the environment is empty
    return (await readFile(`/proc/${pid}/environ`, "latin1")).split("\0").includes(assignment);
  } catch {
    return false; // it is gone, or somebody else's
  }
}

function killProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (!isErrno(error, "ESRCH")) throw error; // it went by itself
  }
}
