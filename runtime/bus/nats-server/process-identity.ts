import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { platformEnvironment } from "../../config/platform-environment.ts";

/** A process id alone is reused by the system; with the moment of its start it names one process for ever. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startedAt: string;
}

/** Gives undefined when no such process runs. */
export function identityOfProcess(pid: number): ProcessIdentity | undefined {
  const startedAt = startFromProc(pid) ?? fromPs(pid, "lstart=");
  return startedAt === undefined ? undefined : { pid, startedAt };
}

export function isSameProcessAlive(identity: ProcessIdentity): boolean {
  const running = identityOfProcess(identity.pid);
  return running !== undefined && running.startedAt === identity.startedAt; // it is read from a file, which may name no start
}

/** The name of this boot of the machine, which nobody elsewhere knows; empty where the system gives it none. */
export function bootId(): string {
  return readOptional("/proc/sys/kernel/random/boot_id")?.trim() ?? "";
}

/** The words that the process was started with, parted by spaces; undefined when it does not run. */
export function commandLineOf(pid: number): string | undefined {
  const words = readOptional(`/proc/${pid}/cmdline`);
  if (words) return words.split("\0").join(" ").trim();
  return fromPs(pid, "args=");
}

/** Field 22 of `stat` is the start in clock ticks since boot; the name before it may hold spaces and brackets. */
function startFromProc(pid: number): string | undefined {
  const stat = readOptional(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const isZombie = fields[0] === "Z";
  return isZombie ? undefined : fields[19];
}

/** The moment of a start is written in a language and a time zone, which must be the same whoever asks. */
function fromPs(pid: number, format: string): string | undefined {
  const env = { ...platformEnvironment(), LC_ALL: "C", TZ: "UTC" };
  try {
    const words = ["-o", format, "-p", String(pid)];
    const stdout = execFileSync("ps", words, { encoding: "utf8", env, stdio: ["ignore", "pipe", "ignore"] });
    return stdout.trim() || undefined;
  } catch {
    return undefined; // ps fails when no such process runs
  }
}

function readOptional(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined; // the process is gone, or the system has no /proc: the caller asks ps then
  }
}
