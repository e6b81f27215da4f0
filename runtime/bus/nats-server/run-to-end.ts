import { basename } from "node:path";
import { installerEnvironment } from "../../config/platform-environment.ts";
import { openChildProcess } from "../../lifecycle/child-process/child-process.ts";
import { textFromExit } from "../../lifecycle/child-process/exit.ts";

export interface RunOptions {
  searchPath?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** Runs a program to its end and gives its stdout. Throws when it fails, with the end of what it wrote to stderr. */
export async function runToEnd(command: string, args: readonly string[], options: RunOptions): Promise<string> {
  const { searchPath, signal } = options;
  await using child = await openChildProcess({
    command,
    args,
    env: { ...installerEnvironment(), ...(searchPath !== undefined && { PATH: searchPath }) },
    ...(signal ? { signal } : {}),
  });
  child.endInput();
  const chunks: Buffer[] = [];
  for await (const chunk of child.output()) chunks.push(chunk);
  const exit = await child.exited;
  signal?.throwIfAborted();
  if (exit.code !== 0) throw new Error(`${basename(command)} ${args.join(" ")} ${textFromExit(exit)}`);
  return Buffer.concat(chunks).toString("utf8");
}
