import { relative } from "node:path";
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

/** Follows the files of a directory and of folders below, but for packages; resolves when nothing is missed from then on. */
export async function openDirectoryWatch(options: DirectoryWatchOptions): Promise<AsyncDisposable> {
  const { directory, isWatched, logger, onChange } = options;
  const touched = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const ofPackages = (path: string) => /(^|\/)(node_modules|site-packages|\.[^.])/.test(relative(directory, path));
  const watcher = watch(directory, { ignoreInitial: true, ignored: ofPackages });
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
