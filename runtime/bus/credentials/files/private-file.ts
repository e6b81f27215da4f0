import { rename, writeFile } from "node:fs/promises";

/** Writes a file that its owner alone can read. Whoever reads meanwhile gets the one or the other whole. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, text, { mode: 0o600 });
  await rename(draft, path);
}
