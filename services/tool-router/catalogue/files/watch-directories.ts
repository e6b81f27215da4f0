import { watch } from "chokidar";

const QUIET_MS = 50;

/** Calls back once changes have come to rest. */
export async function watchDirectories(directories: string[], onChange: () => void): Promise<AsyncDisposable> {
  let timer: NodeJS.Timeout | undefined;
  const watcher = watch(directories, { ignoreInitial: true, depth: 0 });
  watcher.on("all", () => {
    clearTimeout(timer);
    timer = setTimeout(onChange, QUIET_MS);
  });
  await new Promise<void>((resolve) => watcher.once("ready", resolve));
  return {
    async [Symbol.asyncDispose]() {
      clearTimeout(timer);
      await watcher.close();
    },
  };
}
