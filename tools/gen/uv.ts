import { access } from "node:fs/promises";
import { join } from "node:path";
import { observeCommand, projectRoot, runCommand } from "./command.ts";

/** The uv on the PATH, else one that pip puts inside the project. */
export async function findUv(_root: string): Promise<string> {
  const folder = join(projectRoot, ".toolbus", "uv");
  const own = join(folder, "bin", "uv");
  const onPath = await observeCommand("uv", ["--version"], { cwd: projectRoot }).catch(() => undefined);
  if (onPath?.exitCode === 0) return "uv";
  const isThere = await access(own).then(
    () => true,
    () => false,
  );
  if (!isThere) await runCommand("python3", ["-m", "pip", "install", "--target", folder, "uv"], { cwd: projectRoot });
  return own;
}
