/**
 * The server's process and the watchdog that ends it when this process dies without having said goodbye.
 *
 * W1  Both are leaders of their own sessions: Ctrl-C at a terminal reaches the suite, which drains, and not the server.
 * W2  The watchdog holds the reading end of a pipe whose only writer is this process. A line means goodbye; the end of the
 *     pipe without one means that this process is dead, even by SIGKILL.
 * W3  The watchdog signals only a process whose command line names our configuration file.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { open } from "node:fs/promises";
import { delay } from "../../time/delay.ts";
import type { ServerFiles } from "./server-files.ts";

export interface ServerProcess extends AsyncDisposable {
  readonly pid: number;
  /** Settles when the server has ended, for whatever reason; tells how. */
  readonly exited: Promise<string>;
}

const watchdogScript = `
if read -r goodbye; then exit 0; fi
words=$( (tr '\\0' ' ' < "/proc/$1/cmdline") 2>/dev/null || ps -o args= -p "$1")
case "$words" in *"$2"*) kill -TERM "$1" ;; esac
`;

const stopMs = 5_000;

export async function openServerProcess(binary: string, files: ServerFiles): Promise<ServerProcess> {
  const output = await open(files.output, "w", 0o600);
  const server = spawn(binary, ["-c", files.config], { detached: true, stdio: ["ignore", output.fd, output.fd] });
  const exited = once(server, "exit").then(
    ([code, signal]) => (signal === null ? `exit code ${code}` : `signal ${signal}`),
    (error: unknown) => `not started: ${error instanceof Error ? error.message : String(error)}`,
  );
  await output.close();
  if (server.pid === undefined) throw new Error(`${binary}: ${await exited}`);
  server.unref();
  const watchdog = openWatchdog(server.pid, files.config);
  void exited.then(() => sayGoodbye(watchdog));
  return { pid: server.pid, exited, [Symbol.asyncDispose]: () => stop(server, exited) };
}

function openWatchdog(pid: number, config: string): ChildProcess {
  const watchdog = spawn("/bin/sh", ["-c", watchdogScript, "toolbus-watchdog", String(pid), config], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  watchdog.on("error", () => {}); // no shell here: then a left-over server is replaced by the next opener
  watchdog.stdin?.on("error", () => {}); // somebody ended the watchdog: the same
  watchdog.unref();
  if (watchdog.stdin && "unref" in watchdog.stdin) (watchdog.stdin as unknown as { unref(): void }).unref();
  return watchdog;
}

function sayGoodbye(watchdog: ChildProcess): void {
  watchdog.stdin?.end("goodbye\n");
}

async function stop(server: ChildProcess, exited: Promise<string>): Promise<void> {
  server.ref();
  server.kill("SIGTERM");
  const given = new AbortController();
  const late = delay(stopMs, given.signal).then(
    () => server.kill("SIGKILL"),
    () => false, // it ended in time
  );
  await exited;
  given.abort();
  await late;
}
