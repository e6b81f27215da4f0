import { fileURLToPath } from "node:url";
import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { type ChildProcess, openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { textFromExit } from "#runtime/lifecycle/child-process/exit.ts";
import { printLine, printNote } from "../../cli/printing/print.ts";

export interface Client {
  /** What it does; it ends with 0 only if all of it went well. */
  readonly name: string;
  readonly directory: string;
  readonly command: () => Promise<readonly [command: string, ...args: string[]]>;
  /** Long enough to fetch and build, the first time, what it needs. */
  readonly timeoutMs: number;
}

export const clients: Readonly<Record<string, Client>> = {
  python: {
    name: "a Python client lists tools, calls one and watches a run by gRPC and generated stubs",
    directory: "python",
    command: async () => [await findUv(), "run", "client.py"],
    timeoutMs: 180_000,
  },
  go: {
    name: "a Go client lists tools, calls one and watches a run by gRPC and generated stubs",
    directory: "go",
    command: async () => ["go", "run", "."],
    timeoutMs: 300_000,
  },
  grpcurl: {
    name: "grpcurl lists services, calls a tool and watches a run by reflection alone, and finds nothing internal",
    directory: "grpcurl",
    command: async () => [process.execPath, "client.ts"],
    timeoutMs: 420_000,
  },
  browser: {
    name: "a page in Chromium lists tools, calls one and watches a run by Connect and gRPC-Web, from another origin",
    directory: "browser",
    command: async () => [process.execPath, "client.ts"],
    timeoutMs: 120_000,
  },
};

/** Runs a client to its end and shows what it prints; tells what went wrong, or nothing. */
export async function faultOf(client: Client, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const signal = AbortSignal.timeout(client.timeoutMs);
  await using child = await openClient(client, { env, signal });
  for await (const line of child.lines()) printLine(line);
  const exit = await child.exited;
  if (signal.aborted) return `was not done after ${client.timeoutMs / 1_000} s`;
  return exit.code === 0 ? undefined : textFromExit({ ...exit, stderrTail: "" }); // stderr is shown as it comes
}

async function openClient(
  { command, directory }: Client,
  { env, signal }: { env: NodeJS.ProcessEnv; signal: AbortSignal },
): Promise<ChildProcess> {
  const [program, ...args] = await command();
  const cwd = fileURLToPath(new URL(directory, import.meta.url));
  return openChildProcess({ command: program, args, cwd, env, signal, onStderrLine: printNote });
}
