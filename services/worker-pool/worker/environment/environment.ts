import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, rm, stat, utimes } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Failure, messageFromUnknown } from "#runtime/failure/failure.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import type { Confinement } from "#runtime/lifecycle/child-process/confinement.ts";
import { type ChildExit, textFromExit } from "#runtime/lifecycle/child-process/exit.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import type { OfferedFile } from "../../files/tool-file.ts";

export interface InstallOptions {
  uv: string;
  /** The tool file, whose metadata say what to install. */
  file: Pick<OfferedFile, "path" | "environment">;
  environment: Record<string, string>;
  /** What stands in uv's cache may have been put there by a tool, and runs. */
  confinement: Confinement | undefined;
  timeoutMs: number;
  signal: AbortSignal;
  onLine: (line: string) => void;
}

/**
 * Brings an isolated environment for a file up to date, and gives the path of its Python. Each set of dependencies that the file
 * ever had has one, beside those that `uv run --script` makes: workers of an older version run on in theirs. Apart from the
 * start, so that it has a time of its own. Throws `failed_precondition` with uv's own words.
 */
export async function installEnvironment(options: InstallOptions): Promise<string> {
  using timeout = timeoutSignal(options.timeoutMs);
  using ending = openEnding(timeout, options.signal);
  const place = await placeOf(options);
  const isWhole = () => existsSync(join(place, "bin", "python"));
  if (!isWhole()) await rm(place, { recursive: true, force: true }); // uv mends no environment that it was killed in
  let { exit, output } = await sync(options, ending.signal, ["--active"], place);
  if (exit.code !== 0 && !isWhole() && !ending.signal.aborted) {
    // Of an environment that is not there yet uv says no more than that. What is wrong it says of one of its own.
    const own = await sync(options, ending.signal, ["--dry-run"]);
    if (own.exit.code !== 0) ({ exit, output } = own);
  }
  options.signal.throwIfAborted();
  if (timeout.aborted) refuseInstall(`not done after ${options.timeoutMs} ms`, exit.stderrTail);
  const hint = `uv lock --script ${basename(options.file.path)}`; // uv speaks of a project's lock
  if (exit.code !== 0) refuseInstall(textFromExit(exit).replace("`uv lock`", `\`${hint}\``), "");
  await removeUnused(place).catch(() => {}); // the environment is there all the same
  return pythonFromOutput(output);
}

/** Whether the environment of that Python is there, and not taken out of uv's cache, as `uv cache prune` does. It counts as used from now on. */
export function isThere(python: string): boolean {
  if (!existsSync(python)) return false;
  const now = new Date();
  utimes(dirname(dirname(python)), now, now).catch(() => {}); // it is there all the same
  return true;
}

async function sync(
  { uv, file: { path }, environment, confinement, onLine }: InstallOptions,
  signal: AbortSignal,
  words: readonly string[],
  place?: string,
): Promise<{ exit: ChildExit; output: string }> {
  const locked = existsSync(`${path}.lock`) ? ["--locked"] : []; // uv would bring a stale one up to date, unseen
  const form = ["--output-format", "json", "--no-progress", "--color", "never"];
  await using child = await openChildProcess({
    command: uv,
    args: ["sync", "--script", path, ...words, ...locked, ...form],
    env: { ...environment, ...(place !== undefined && { VIRTUAL_ENV: place }) },
    cwd: dirname(path),
    confinement: confinement && { ...confinement, visible: [dirname(path)] },
    signal,
    onStderrLine: onLine,
  });
  child.endInput();
  const output = (await Array.fromAsync(child.lines())).join("\n");
  return { exit: await child.exited, output };
}

/** In uv's cache, which holds all environments of scripts. */
async function placeOf({ uv, file: { path, environment }, ...options }: InstallOptions): Promise<string> {
  const asked = { command: uv, args: ["cache", "dir"], env: options.environment, signal: options.signal };
  await using child = await openChildProcess(asked);
  const [cache = ""] = await Array.fromAsync(child.lines());
  if (cache === "") refuseInstall("uv tells no directory of its cache", (await child.exited).stderrTail);
  const directory = createHash("sha256").update(path).digest("hex").slice(0, 8);
  return join(cache, "environments-v2", `${basename(path, ".py")}-${directory}-${environment.slice(0, 16)}`);
}

/** Environments of the file that nobody has used for so long are given back. */
const UNUSED_MS = 7 * 24 * 60 * 60_000;

/** Of all environments of a file but this one. Another pool of the machine may remove the same ones at the same time. */
async function removeUnused(place: string): Promise<void> {
  const now = new Date();
  await utimes(place, now, now);
  const stem = basename(place).slice(0, -16);
  const all = await readdir(dirname(place));
  const others = all.filter((name) => name.startsWith(stem) && /^[0-9a-f]{16}$/.test(name.slice(stem.length)));
  const removals = others.map(async (name) => {
    const other = join(dirname(place), name);
    if ((await stat(other)).mtimeMs < now.getTime() - UNUSED_MS) await rm(other, { recursive: true, force: true });
  });
  await Promise.allSettled(removals);
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
