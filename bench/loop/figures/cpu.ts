import { readFileSync } from "node:fs";

/** Ticks of the kernel's clock a second, as `getconf CLK_TCK` says on every Linux in use. */
const ticksPerSecond = 100;

/** CPU time that a process has used, its threads included, in microseconds. */
export function cpuMicrosecondsOf(pid: number): number {
  const [user = 0, system = 0] = statOf(pid).slice(11, 13).map(Number);
  return ((user + system) * 1e6) / ticksPerSecond;
}

/** Resident memory of a process, in bytes. */
export function residentBytesOf(pid: number): number {
  const [kib = "0"] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.slice(1) ?? [];
  return Number(kib) * 1_024;
}

/** The fields after the process's name, which may hold blanks. */
function statOf(pid: number): string[] {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
}
