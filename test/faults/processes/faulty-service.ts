import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { ServiceMessage } from "#runtime/lifecycle/run-service.ts";
import { until } from "#runtime/time/until.ts";

/** A service in a process of its own, to be killed and frozen. It is started again whenever it ends, unless it cannot start. */
export interface FaultyService extends AsyncDisposable {
  readonly service: string;
  readonly instance: string;
  /** Its last lines. */
  readonly lines: readonly string[];
  readonly isReady: boolean;
  /** Of the process that runs at the moment, if any. */
  readonly pid: number | undefined;
  /** Ends it as a crash does. Resolves when it has ended; it starts again meanwhile. */
  kill(): Promise<void>;
  /** Asks it to end in an orderly way. Resolves when it has; it starts again meanwhile. */
  stop(): Promise<void>;
  /** What its process shows as the time differs so much from the true one, until it ends. */
  shiftClock(byMs: number): void;
  freeze(): void;
  thaw(): void;
  /** Resolves when the process that runs at the moment can be used. */
  ready(): Promise<void>;
}

export interface FaultyServiceOptions {
  readonly tree: string;
  readonly service: string;
  readonly instance: string;
  readonly env: NodeJS.ProcessEnv;
  /** It ended without having been killed here. */
  readonly onUnaskedEnd: (how: string) => void;
}

const keptLines = 400;
const startMs = 120_000;
const preloads = ["compile-cache.ts", "clock.ts"].map((name) => `--import=${new URL(name, import.meta.url).href}`);

/** Who is killed starts again all the time: what the first process of a service has compiled, the next ones find beside the tree. */
const compiledServices = new Set<string>();

function keepCompiled(process: ChildProcess, { tree, service }: FaultyServiceOptions): void {
  const key = join(tree, service);
  if (compiledServices.has(key)) return;
  compiledServices.add(key);
  process.kill("SIGUSR2");
}

export function openFaultyService(options: FaultyServiceOptions): FaultyService {
  const { tree, service, instance, env } = options;
  const lines: string[] = [];
  let child: ChildProcess | undefined;
  let isReady = false;
  let isClosed = false;
  let isKilled = false;
  let hasFailed = false;

  function start(): void {
    isReady = false;
    isKilled = false;
    const process = fork(join(tree, "services", service, "main.ts"), {
      env: { ...env, NODE_COMPILE_CACHE: join(tree, ".toolbus", "compile-cache") },
      execArgv: preloads,
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    child = process;
    for (const stream of [process.stdout, process.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on("line", (line) => {
        lines.push(line);
        if (lines.length > keptLines) lines.shift();
      });
    }
    process.on("message", (message: ServiceMessage) => {
      if (message.kind !== "ready") return;
      isReady = true;
      keepCompiled(process, options);
    });
    process.once("exit", (code, signal) => {
      hasFailed = !isReady && !isKilled;
      isReady = false;
      child = undefined;
      if (isClosed) return;
      if (!isKilled) options.onUnaskedEnd(`${instance} ended by itself: ${signal ?? `exit code ${code}`}`);
      if (!hasFailed) start();
    });
  }

  async function endBy(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const victim = child;
    if (victim === undefined) return;
    isKilled = true;
    const ended = once(victim, "exit");
    victim.kill(signal);
    await ended;
  }

  start();
  return {
    service,
    instance,
    lines,
    get isReady() {
      return isReady;
    },
    get pid() {
      return child?.pid;
    },
    kill: () => endBy("SIGKILL"),
    stop: () => endBy("SIGTERM"),
    shiftClock: (byMs) => void child?.send({ kind: "clock", byMs }),
    freeze: () => void child?.kill("SIGSTOP"),
    thaw: () => void child?.kill("SIGCONT"),
    async ready() {
      await until(() => isReady || hasFailed, { timeoutMs: startMs }).catch(() => {}); // too late: told below
      if (!isReady) throw new Error(`${instance} cannot start; its last lines:\n${lines.slice(-10).join("\n")}`);
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      const last = child;
      if (last === undefined) return;
      const ended = once(last, "exit");
      last.kill("SIGKILL");
      await ended;
    },
  };
}
