import { join } from "node:path";
import { runToEnd } from "../run-to-end.ts";
import { type FindContext, fetchOnce, lockedWheels } from "./executable.ts";
import { findUv } from "./find-uv.ts";

/** Fetches the wheel that `<name>.txt` locks into a directory of its own, and gives that; once it is there, does nothing. */
export async function fetchByUv(
  context: FindContext,
  { name, version }: { name: string; version: string },
): Promise<string> {
  const directory = join(context.cacheDirectory, name, version);
  await fetchOnce(directory, context, async (temporary) => {
    const uv = await findUv(context);
    context.onProgress(`toolbus: fetching ${name} ${version} from PyPI into ${directory}`);
    const words = ["pip", "install", "--quiet", "--target", temporary, ...lockedWheels(`${name}.txt`)];
    await runToEnd(uv, words, context);
  });
  return directory;
}
