import { readdirSync, readFileSync } from "node:fs";

/** What the descendants of this process hold together, in bytes: a page that several of them map counts once. */
export function bytesOfDescendants(): number {
  const parents = new Map(
    readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map((name) => [name, parentOf(name)]),
  );
  const isOurs = (pid: string | undefined): boolean =>
    pid !== undefined && (parents.get(pid) === `${process.pid}` || isOurs(parents.get(pid)));
  return [...parents.keys()].filter(isOurs).reduce((sum, pid) => sum + proportionalBytesOf(pid), 0);
}

function parentOf(pid: string): string | undefined {
  return /^PPid:\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1];
}

function proportionalBytesOf(pid: string): number {
  return Number(/^Pss:\s+(\d+) kB/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0) * 1_024;
}

/** Empty for a process that has ended meanwhile. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
