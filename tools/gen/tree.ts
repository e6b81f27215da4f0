import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";

/** Written by hand inside gen/, so no generator gives or takes them. */
const handWritten = new Set(["README.md", "go/go.mod", "go/go.sum", "python/pyproject.toml"]);

/** The generated files below a folder, by their path relative to it, with forward slashes. */
export type Tree = ReadonlyMap<string, Buffer>;

export interface Staleness {
  /** Generated afresh, but not in the tree. */
  readonly missing: readonly string[];
  /** In the tree with another content. */
  readonly changed: readonly string[];
  /** In the tree, and no longer generated. */
  readonly leftOver: readonly string[];
}

export async function readTree(folder: string): Promise<Tree> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .filter((path) => !handWritten.has(path) && !path.includes("__pycache__/"))
    .sort();
  return new Map(await Promise.all(paths.map(async (path) => [path, await readFile(join(folder, path))] as const)));
}

export function stalenessOf(committed: Tree, fresh: Tree): Staleness {
  const freshPaths = [...fresh.keys()];
  return {
    missing: freshPaths.filter((path) => !committed.has(path)),
    changed: freshPaths.filter((path) => committed.get(path)?.equals(fresh.get(path) ?? Buffer.alloc(0)) === false),
    leftOver: [...committed.keys()].filter((path) => !fresh.has(path)),
  };
}

/** Makes the folder hold the fresh tree and nothing else but what is written by hand; untouched files keep their time. */
export async function writeTree(folder: string, fresh: Tree): Promise<Staleness> {
  const staleness = stalenessOf(await readTree(folder), fresh);
  for (const path of staleness.leftOver) await rm(join(folder, path));
  for (const path of [...staleness.missing, ...staleness.changed]) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), fresh.get(path) ?? "");
  }
  return staleness;
}
