import { watch } from "chokidar";

const QUIET_MS = 50;

/** By so much a file's time may be behind the clock. */
const TICK_MS = 20;

/**
 * Calls back once changes since a time have come to rest. The directories are scanned first, which nobody waits for: of what is found
 * then, the time of its change tells whether it is one; of what is gone, that of its directory.
 */
export function watchDirectories(directories: string[], sinceMs: number, onChange: () => void): AsyncDisposable {
  let timer: NodeJS.Timeout | undefined;
  let isScanned = false;
  const watcher = watch(directories, { depth: 0, alwaysStat: true });
  watcher.once("ready", () => (isScanned = true));
  watcher.on("all", (_event, _path, stats) => {
    if (!isScanned && stats !== undefined && stats.ctimeMs < sinceMs - TICK_MS) return;
    clearTimeout(timer);
    timer = setTimeout(onChange, QUIET_MS);
  });
  return {
    async [Symbol.asyncDispose]() {
      clearTimeout(timer);
      await watcher.close();
    },
  };
}
