import { spawn } from "node:child_process";
import { accessSync, constants, mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The root of this project: where package.json, buf.yaml and node_modules stand. */
export const projectRoot: string = fileURLToPath(new URL("../../", import.meta.url));

export interface CommandOptions {
  readonly cwd: string;
  /** Names the tool and where to get it, for machines that lack it. */
  readonly whenMissing?: string;
}

export interface CommandOutcome {
  readonly exitCode: number;
  readonly stdout: string;
  /** Both streams, in the order in which they came. */
  readonly output: string;
}

/** Runs a command to its end and tells how it went; throws only if it cannot be started. */
export async function observeCommand(
  command: string,
  args: readonly string[],
  options: CommandOptions,
): Promise<CommandOutcome> {
  const child = spawn(command, args, { cwd: options.cwd, env: toolEnvironment(), stdio: ["ignore", "pipe", "pipe"] });
  const stdout: Buffer[] = [];
  const output: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => {
    stdout.push(chunk);
    output.push(chunk);
  });
  child.stderr.on("data", (chunk: Buffer) => output.push(chunk));
  const exitCode = await new Promise<number>((resolve, reject) => {
    child.on("error", (cause) => reject(new Error(missingMessage(command, options, cause), { cause })));
    child.on("close", (code) => resolve(code ?? 1));
  });
  return { exitCode, stdout: Buffer.concat(stdout).toString(), output: Buffer.concat(output).toString() };
}

/** Runs a command that has to succeed and gives its standard output; a failure carries all that it printed. */
export async function runCommand(command: string, args: readonly string[], options: CommandOptions): Promise<string> {
  const outcome = await observeCommand(command, args, options);
  if (outcome.exitCode !== 0) {
    throw new Error(`${command} ${args.join(" ")} ended with ${outcome.exitCode}:\n${outcome.output.trimEnd()}`);
  }
  return outcome.stdout;
}

function missingMessage(command: string, options: CommandOptions, cause: Error): string {
  const isMissing = "code" in cause && cause.code === "ENOENT";
  return isMissing && options.whenMissing !== undefined ? options.whenMissing : `${command}: ${cause.message}`;
}

/**
 * The project's own tools come first on the PATH. Go, uv and buf keep their caches under HOME, so a machine
 * without a usable one gets a home inside the project.
 */
function toolEnvironment(): NodeJS.ProcessEnv {
  const path = [join(projectRoot, "node_modules", ".bin"), process.env.PATH ?? ""].join(delimiter);
  return { ...process.env, PATH: path, HOME: usableHome(process.env.HOME), UV_NO_PROGRESS: "1" };
}

function usableHome(home: string | undefined): string {
  if (home !== undefined && isWritable(home)) return home;
  const ownHome = join(projectRoot, ".toolbus", "home");
  mkdirSync(ownHome, { recursive: true });
  return ownHome;
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    // Absent or read-only: both mean that nothing can be kept there, which is the answer.
    return false;
  }
}
