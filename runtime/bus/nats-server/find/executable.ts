import { mkdir, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { userCache } from "../../../config/places.ts";
import { openLockFile } from "../lock-file.ts";

/** How the programs that the suite needs are found; every member has a default that suits a person at a terminal. */
export interface FindOptions {
  /** Where fetched programs are kept: that of the user unless told. */
  cacheDirectory?: string | undefined;
  /** Folders to look in, as in PATH, which is the default. */
  searchPath?: string | undefined;
  /** Told about work that takes longer than a moment; a line on stderr unless told. */
  onProgress?: ((line: string) => void) | undefined;
  signal?: AbortSignal | undefined;
}

export interface FindContext {
  readonly cacheDirectory: string;
  readonly searchPath: string;
  readonly onProgress: (line: string) => void;
  readonly signal: AbortSignal | undefined;
}

export function contextFromOptions(options: FindOptions): FindContext {
  return {
    cacheDirectory: options.cacheDirectory ?? userCache(),
    searchPath: options.searchPath ?? process.env.PATH ?? "",
    onProgress: options.onProgress ?? ((line) => process.stderr.write(`${line}\n`)),
    signal: options.signal,
  };
}

/**
 * Fills a folder by `fetch`, once for all processes that want it at the same time.
 * It appears under its name only when it is complete: a fetch that was killed leaves nothing that looks finished.
 */
export async function fetchOnce(
  target: string,
  context: FindContext,
  fetch: (temporary: string) => Promise<void>,
): Promise<void> {
  // one that cannot be looked at is fetched, which says what is wrong with its place
  const exists = async () => (await stat(target).catch(() => undefined)) !== undefined;
  if (await exists()) return;
  await mkdir(dirname(target), { recursive: true });
  const onWait = () => context.onProgress(`toolbus: waiting for another process, which fetches ${target}`);
  using _lock = await openLockFile(`${target}.lock.db`, context.signal, onWait);
  if (await exists()) return;
  const temporary = `${target}.partial`;
  await rm(temporary, { recursive: true, force: true }); // of a process that was killed while it fetched
  await fetch(temporary);
  await rename(temporary, target);
}

/** What tells pip, or uv as pip, to install the version that a file beside this one names: whole wheels with these hashes, or nothing. */
export function lockedWheels(file: string): string[] {
  const requirements = fileURLToPath(new URL(`./${file}`, import.meta.url));
  return ["--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", requirements];
}
