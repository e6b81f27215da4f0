import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { descendantsOf } from "../../test/harness/processes.ts";
import { residentBytesOf } from "../loop/figures/cpu.ts";

export interface Up extends AsyncDisposable {
  readonly pid: number;
  /** From the start of the command to the line that says that all is ready. */
  readonly readyMs: number;
}

/** `toolbus up` by a program in a project, on a free port and with a directory of its own. */
export async function openUp(program: string, project: string, args: readonly string[] = []): Promise<Up> {
  const directory = await mkdtemp(join(tmpdir(), "bench-start-"));
  const { NATS_URL: _, ...env } = process.env;
  const startedAt = performance.now();
  const child = spawn(process.execPath, [program, "--json", "up", "--port", "0", "--directory", directory, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    cwd: project,
    env,
  });
  const ended = once(child, "exit");
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.includes('"kind":"ready","url"')) break;
  }
  const readyMs = performance.now() - startedAt;
  if (child.exitCode !== null) throw new Error(`\`up\` ended with ${child.exitCode} before it was ready`);
  child.stdout.resume();
  return {
    pid: child.pid ?? 0,
    readyMs,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await ended;
      await rm(directory, { recursive: true, force: true, maxRetries: 20 });
    },
  };
}

/** What the process and all that it has started hold together; pages that they share are counted for each. */
export async function residentMegabytes(pid: number): Promise<number> {
  const pids = [pid, ...(await descendantsOf(pid))];
  const bytes = await Promise.all(pids.map((one) => residentBytesOf(one)));
  return bytes.reduce((sum, one) => sum + one, 0) / 1e6;
}
