import { realpathSync, type Stats, statSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { relative, sep } from "node:path";
import { watch } from "chokidar";
import type { Logger } from "#runtime/lifecycle/logger.ts";

interface DirectoryWatchOptions {
  directory: string;
  isWatched: (path: string) => boolean;
  logger: Pick<Logger, "warn">;
  /** Told what changed, by its path in the directory, once it has come to rest. */
  onChange: (paths: readonly string[]) => void;
}

/** Editors write a file in several steps; what happens within this time is told once. */
const SETTLE_MS = 50;

/**
 * Follows the files of a directory, which is made if there is none, and of folders below, but for packages and for links to folders
 * elsewhere. Resolves when nothing is missed from then on.
 */
export async function openDirectoryWatch(options: DirectoryWatchOptions): Promise<AsyncDisposable> {
  const { directory, isWatched, logger, onChange } = options;
  await mkdir(directory, { recursive: true });
  const touched = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const ofPackages = (path: string) => /(^|\/)(node_modules|site-packages|\.[^.])/.test(relative(directory, path));
  const root = realpathSync(directory) + sep;
  const ignored = (path: string, stats?: Stats) =>
    ofPackages(path) || (path !== directory && stats?.isFile() === false && !isWithin(root, path));
  const watcher = watch(directory, { ignoreInitial: true, ignored });
  watcher.on("all", (_event, path) => {
    if (!isWatched(path)) return;
    touched.add(relative(directory, path));
    clearTimeout(timer);
    timer = setTimeout(() => {
      const paths = [...touched];
      touched.clear();
      onChange(paths);
    }, SETTLE_MS).unref();
  });
  watcher.on("error", (error) => logger.warn({ err: error }, `watching ${directory} failed`));
  await new Promise<void>((resolve) => watcher.once("ready", resolve));
  return {
    async [Symbol.asyncDispose]() {
      clearTimeout(timer);
      await watcher.close();
    },
  };
}

/** Whether a folder lies there, links followed: one elsewhere may be as large as a disk. Of what is no folder, true. */
function isWithin(root: string, path: string): boolean {
  try {
    return !statSync(path).isDirectory() || realpathSync(path).startsWith(root);
  } catch {
    return true; // gone since, or a link that leads nowhere
  }
}
