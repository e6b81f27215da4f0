import { readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";

/** Processes at home in the directory, or that were started for one of its files: workers, what they started, and those around them. */
export async function processesOf(directory: string): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const isOf = await Promise.all(pids.map((pid) => isProcessOf(pid, directory)));
  return pids.filter((pid, index) => pid !== process.pid && isOf[index]);
}

async function isProcessOf(pid: number, directory: string): Promise<boolean> {
  const [cwd, command] = await Promise.all([
    readlink(join("/proc", String(pid), "cwd")).catch(() => ""), // it has ended meanwhile
    readFile(join("/proc", String(pid), "cmdline"), "utf8").catch(() => ""),
  ]);
  return cwd.startsWith(directory) || command.includes(directory);
}

export async function descriptorsOf(pid: number): Promise<number> {
  return (await readdir(join("/proc", String(pid), "fd"))).length;
}
