import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { runToEnd } from "./run-to-end.ts";

/** A process id alone is reused by the system; with the moment of its start it names one process for ever. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startedAt: string;
}

/** Gives undefined when no such process runs. */
export async function identityOfProcess(pid: number): Promise<ProcessIdentity | undefined> {
  const startedAt = (await startFromProc(pid)) ?? (await fromPs(pid, "lstart="));
  return startedAt === undefined ? undefined : { pid, startedAt };
}

export async function isSameProcessAlive(identity: ProcessIdentity): Promise<boolean> {
  return (await identityOfProcess(identity.pid))?.startedAt === identity.startedAt;
}

/** The same at once, for who cannot wait; where there is no /proc, it takes as long as `ps`. */
export function isSameProcessAliveNow({ pid, startedAt }: ProcessIdentity): boolean {
  return startedAt === (startFromStat(readOptionalNow(`/proc/${pid}/stat`)) ?? fromPsNow(pid));
}

/** The words that the process was started with, parted by spaces; undefined when it does not run. */
export async function commandLineOf(pid: number): Promise<string | undefined> {
  const words = await readOptional(`/proc/${pid}/cmdline`);
  if (words) return words.split("\0").join(" ").trim();
  return fromPs(pid, "args=");
}

/** Field 22 of `stat` is the start in clock ticks since boot; the name before it may hold spaces and brackets. */
async function startFromProc(pid: number): Promise<string | undefined> {
  return startFromStat(await readOptional(`/proc/${pid}/stat`));
}

function startFromStat(stat: string | undefined): string | undefined {
  if (stat === undefined) return undefined;
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const isZombie = fields[0] === "Z";
  return isZombie ? undefined : fields[19];
}

async function fromPs(pid: number, format: string): Promise<string | undefined> {
  try {
    const stdout = await runToEnd("ps", ["-o", format, "-p", String(pid)]);
    return stdout.trim() || undefined;
  } catch {
    return undefined; // ps fails when no such process runs
  }
}

function fromPsNow(pid: number): string | undefined {
  const { stdout, error } = spawnSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" });
  return error === undefined ? stdout.trim() || undefined : undefined;
}

function readOptionalNow(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined; // as below
  }
}

async function readOptional(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch {
    return undefined; // the process is gone, or the system has no /proc: the caller asks ps then
  }
}
