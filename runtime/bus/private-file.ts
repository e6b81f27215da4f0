import { chmod, writeFile } from "node:fs/promises";

/** Writes a file that only this user reads. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  await writeFile(path, text, { mode: 0o600 });
  await chmod(path, 0o600); // the mode above holds for files that did not exist
}
