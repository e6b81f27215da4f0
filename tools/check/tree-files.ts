import { access } from "node:fs/promises";
import { join } from "node:path";
import { observeCommand } from "../gen/command.ts";

/** The files of the tree that git knows or would add, without those that were just deleted. */
export async function treePaths(root: string, isWanted: (path: string) => boolean): Promise<string[]> {
  const args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"];
  const { exitCode, output, stdout } = await observeCommand("git", args, { cwd: root });
  if (exitCode !== 0) throw new Error(`git cannot list the tree: ${output}`);
  const paths = stdout.split("\0").filter((path) => path !== "" && isWanted(path));
  const isThere = await Promise.all(
    paths.map((path) =>
      access(join(root, path)).then(
        () => true,
        () => false, // deleted, and not committed yet
      ),
    ),
  );
  return paths.filter((_, index) => isThere[index]);
}

export const isGenerated = (path: string): boolean => path.startsWith("gen/");
