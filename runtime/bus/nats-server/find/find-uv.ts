import { dirname, join } from "node:path";
import { userCache } from "../../../config/places.ts";
import { messageFromUnknown } from "../../../failure/failure.ts";
import { LocalFailure } from "../../../failure/local-failure.ts";
import { executableOnPath, isExecutable } from "../../../lifecycle/child-process/command.ts";
import { runToEnd } from "../run-to-end.ts";
import { contextFromOptions, type FindOptions, fetchOnce, lockedWheels } from "./executable.ts";

export const pinnedUv = "0.13.9";

/** Where `findUv` puts what it fetches. */
export function fetchedUv(cacheDirectory = userCache()): string {
  return join(cacheDirectory, "uv", pinnedUv, "bin", "uv");
}

/** The path of `uv`: from the PATH, else fetched once from PyPI by pip into the user's cache. */
export async function findUv(options: FindOptions = {}): Promise<string> {
  const context = contextFromOptions(options);
  const onPath = executableOnPath("uv", context.searchPath);
  if (onPath !== undefined) return onPath;
  const path = fetchedUv(context.cacheDirectory);
  const directory = dirname(dirname(path));
  if (isExecutable(path)) return path;
  try {
    await fetchOnce(directory, context, async (temporary) => {
      context.onProgress(`toolbus: fetching uv ${pinnedUv} from PyPI into ${directory}`);
      const words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", temporary];
      await runToEnd("python3", [...words, ...lockedWheels("uv.txt")], context);
    });
  } catch (error) {
    context.signal?.throwIfAborted();
    throw new LocalFailure(
      "failed_precondition",
      `uv is not on the PATH and could not be fetched from PyPI: ${messageFromUnknown(error)}\n` +
        "Install uv (https://docs.astral.sh/uv), or put Python 3 with pip on the PATH and PyPI in reach.",
      { kind: "uv_not_found", cause: error },
    );
  }
  return path;
}
