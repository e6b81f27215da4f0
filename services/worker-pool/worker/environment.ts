import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { Failure, messageFromUnknown } from "#runtime/failure/failure.ts";
import type { Confinement } from "#runtime/lifecycle/child-process/confinement.ts";
import { textFromExit } from "#runtime/lifecycle/child-process/exit.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";

export interface InstallOptions {
  uv: string;
  /** The tool file, whose metadata say what to install. */
  path: string;
  environment: Record<string, string>;
  /** What stands in uv's cache may have been put there by a tool, and runs. */
  confinement: Confinement | undefined;
  timeoutMs: number;
  signal: AbortSignal;
  onLine: (line: string) => void;
}

/**
 * Brings the isolated environment that `uv run --script` would use for a file up to date, and gives the path of its Python.
 * Apart from the start, so that it has a time of its own. Throws `failed_precondition` with uv's own words.
 */
export async function installEnvironment(options: InstallOptions): Promise<string> {
  const { uv, path, environment, timeoutMs, onLine } = options;
  using timeout = timeoutSignal(timeoutMs);
  using ending = openEnding(timeout, options.signal);
  const locked = existsSync(`${path}.lock`) ? ["--locked"] : []; // uv would bring a stale one up to date, unseen
  await using child = await openChildProcess({
    command: uv,
    args: ["sync", "--script", path, ...locked, "--output-format", "json", "--no-progress", "--color", "never"],
    env: environment,
    cwd: dirname(path),
    confinement: options.confinement && { ...options.confinement, visible: [dirname(path)] },
    signal: ending.signal,
    onStderrLine: onLine,
  });
  child.endInput();
  const output = (await Array.fromAsync(child.lines())).join("\n");
  const exit = await child.exited;
  options.signal.throwIfAborted();
  if (timeout.aborted) refuseInstall(`not done after ${timeoutMs} ms`, exit.stderrTail);
  if (exit.code !== 0) refuseInstall(textFromExit(exit), "");
  return pythonFromOutput(output);
}

function pythonFromOutput(output: string): string {
  try {
    const report: { sync: { environment: { python: { path: string } } } } = JSON.parse(output);
    return report.sync.environment.python.path;
  } catch (error) {
    refuseInstall(`uv's report cannot be read: ${messageFromUnknown(error)}`, output.slice(0, 500));
  }
}

function refuseInstall(reason: string, words: string): never {
  const message = `the dependencies could not be installed: ${reason}${words && `\n${words}`}`;
  throw new Failure("failed_precondition", message, { reason: "WORKER_INSTALL_FAILED" });
}
