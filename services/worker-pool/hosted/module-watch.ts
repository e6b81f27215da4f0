import { relative, sep } from "node:path";
import { watch } from "chokidar";
import type { Logger } from "#runtime/lifecycle/logger.ts";

export interface ModuleWatchOptions {
  directory: string;
  logger: Pick<Logger, "warn">;
  /** Told what changed, by its path in the directory, once it has come to rest. */
  onChange: (paths: readonly string[]) => void;
}

/** Editors write a file in several steps; what happens within this time is told once. */
const SETTLE_MS = 50;

/** Follows whatever a module may be made of, also in folders below; resolves when nothing is missed from then on. */
export async function openModuleWatch({ directory, logger, onChange }: ModuleWatchOptions): Promise<AsyncDisposable> {
  const touched = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const watcher = watch(directory, { ignoreInitial: true, ignored: (path) => path.includes(`${sep}node_modules`) });
  watcher.on("all", (_event, path) => {
    if (!/\.(m?[jt]s|json)$/.test(path)) return;
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
