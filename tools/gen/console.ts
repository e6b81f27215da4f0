import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildConsole } from "../../console/build/build.ts";
import { readTree, type Tree } from "./tree.ts";

const FOLDER = "console/";

/** The console's page as it belongs into gen/, built with the stubs that stand there. */
export async function generateConsole(): Promise<Tree> {
  const workFolder = await mkdtemp(join(tmpdir(), "toolbus-console-"));
  try {
    await buildConsole(workFolder);
    const files = await readTree(workFolder);
    return new Map([...files].map(([path, bytes]) => [FOLDER + path, bytes]));
  } finally {
    await rm(workFolder, { recursive: true, force: true });
  }
}

/** What of gen/ is the console's. */
export function consoleIn(tree: Tree): Tree {
  return new Map([...tree].filter(([path]) => path.startsWith(FOLDER)));
}
