import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { projectRoot } from "../../architecture/source-files.ts";

const execute = promisify(execFile);

/** A change of the source: `from` stands once in the file. */
export interface Edit {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

export interface TreeOptions {
  /** A commit; unless told, the files as they lie there. */
  readonly revision?: string | undefined;
  readonly edits?: readonly Edit[] | undefined;
}

export interface Tree extends AsyncDisposable {
  readonly directory: string;
}

const parts = ["package.json", "gen", "runtime", "services", "sdk"];

/** A copy of what the services are made of, in a temporary directory, so that who edits the original disturbs no run. */
export async function openTreeCopy({ revision, edits = [] }: TreeOptions = {}): Promise<Tree> {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-faults-tree-"));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  await (revision === undefined ? copyFiles(directory) : copyRevision(directory, revision));
  await symlink(join(projectRoot, "node_modules"), join(directory, "node_modules"));
  for (const edit of edits) await applyEdit(directory, edit);
  const owned = stack.move();
  return { directory, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function copyFiles(directory: string): Promise<void> {
  const filter = (source: string) => !source.endsWith("node_modules");
  const copies = parts.map((part) => cp(join(projectRoot, part), join(directory, part), { recursive: true, filter }));
  await Promise.all(copies);
}

async function copyRevision(directory: string, revision: string): Promise<void> {
  const archive = join(directory, "tree.tar");
  await execute("git", ["archive", "--output", archive, revision, "--", ...parts], { cwd: projectRoot });
  await execute("tar", ["-xf", archive, "-C", directory]);
  await rm(archive);
}

async function applyEdit(directory: string, { file, from, to }: Edit): Promise<void> {
  const path = join(directory, file);
  const text = await readFile(path, "utf8");
  if (text.split(from).length !== 2) throw new Error(`${file} does not hold once: ${from}`);
  await writeFile(
    path,
    text.replace(from, () => to),
  );
}
