import { spawn } from "node:child_process";
import { once } from "node:events";
import { projectRoot } from "../../architecture/source-files.ts";
import { programOf } from "../programs.ts";

export interface Ending {
  /** Of a process that a signal ended, undefined. */
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Disposing kills it, if it still runs. */
export interface StartedCommand extends AsyncDisposable {
  readonly pid: number;
  /** What it has written so far. */
  readonly written: { readonly stdout: string; readonly stderr: string };
  readonly ended: Promise<Ending>;
  signal(name: "SIGINT" | "SIGTERM" | "SIGKILL"): void;
  /** Writes to its terminal, or to its standard input as far as that stays open. */
  type(text: string): void;
  /** Reads no more of what it writes, as `head` does. */
  stopReading(): void;
}

export interface CommandOptions {
  env?: NodeJS.ProcessEnv;
  /** Its standard input; without one it has none. */
  input?: string;
  /** Whether it has a terminal, a real one, in place of its standard input, output and error; what it shows is `stdout`. */
  terminal?: boolean;
  /** Another copy of the command, started where it is installed. */
  installed?: { program: string; cwd: string };
}

const directories = new Map<string, string>();

/** Commands at the address find the key of the suite in its directory, as those of whoever stands beside it do. */
export function keepDirectoryOf(url: string, directory: string): void {
  directories.set(url, directory);
}

/** Runs a command in a terminal of its own, and ends as it does. */
const inTerminal = [
  "python3",
  "-c",
  "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))",
];

/** The command `toolbus` as a real process, without colours and without addresses or keys of the machine's own. */
export function startCommand(
  args: readonly string[],
  { env, input, terminal = false, installed }: CommandOptions = {},
): StartedCommand {
  const {
    TOOLBUS_URL: _url,
    TOOLBUS_API_KEY: _key,
    TOOLBUS_DIRECTORY: _directory,
    NATS_URL: _nats,
    ...inherited
  } = process.env;
  const { program, cwd } = installed ?? { program: programOf("cli/main"), cwd: projectRoot };
  const [file = "", ...words] = [...(terminal ? inTerminal : []), process.execPath, program, ...args];
  const child = spawn(file, words, {
    cwd,
    env: { ...inherited, NO_COLOR: "1", ...directoryFor(args, env), ...env },
  });
  const written = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    written.stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    written.stderr += text;
  });
  child.stdin.on("error", () => {}); // it may end without having read
  if (!terminal) child.stdin.end(input ?? "");
  const ended = once(child, "close").then(([code]) => ({ exitCode: (code as number | null) ?? undefined, ...written }));
  return {
    pid: child.pid ?? 0,
    written,
    ended,
    type: (text) => void child.stdin.write(text),
    signal: (name) => void child.kill(name),
    stopReading: () => void child.stdout.destroy(),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

function directoryFor(args: readonly string[], env: NodeJS.ProcessEnv | undefined): NodeJS.ProcessEnv {
  const directory = directories.get(args[args.indexOf("--url") + 1] ?? "") ?? directories.get(env?.TOOLBUS_URL ?? "");
  return directory === undefined ? {} : { TOOLBUS_DIRECTORY: directory };
}

export function runCommand(args: readonly string[], options?: CommandOptions): Promise<Ending> {
  return startCommand(args, options).ended;
}
