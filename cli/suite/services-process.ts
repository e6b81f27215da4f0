// Services in a process of their own: one, or several that share it.
//
// S1  A process that ends without being asked to is started again, with backoff; its end is told of each of its services.
// S2  It holds an IPC channel to this process and ends when the channel closes: a killed suite leaves no service behind.
// S3  Disposing sends SIGTERM, waits for the drain, and sends SIGKILL after `stopTimeoutMs`: a service ends its own drain
//     after 30 s at the latest, so that is the longer time.
// S4  It is started with the platform's variables and nothing else, since every process of the same user can read those. What each
//     service reads comes over the channel: of one service's secrets, another one's process never hears.
// S5  It has a process group of its own: Ctrl-C in a terminal reaches this process alone, which then stops it in order.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { moduleBeside } from "#runtime/config/places.ts";
import { libraryEnvironment, platformEnvironment } from "#runtime/config/platform-environment.ts";
import { type Failure, messageFromUnknown } from "#runtime/failure/failure.ts";
import { LocalFailure } from "#runtime/failure/local-failure.ts";
import type { ServiceMessage } from "#runtime/lifecycle/service.ts";
import { delay } from "#runtime/time/delay.ts";
import { createBackoff } from "#runtime/time/retry/backoff.ts";
import { listServices, variablesOfService } from "./service-names.ts";

/** What a service says of itself when it is ready; the gateway its `url`. */
type Announcement = Record<string, unknown>;

/** One of the services of a process. */
export interface ServiceName {
  readonly service: string;
  readonly instance: string;
}

export type ServiceEvent =
  | { kind: "started"; service: string; instance: string; pid: number }
  | { kind: "ready"; service: string; instance: string; pid: number; durationMs: number; announcement: Announcement }
  | { kind: "ended"; service: string; instance: string; how: string; asked: boolean }
  | { kind: "line"; service: string; instance: string; line: string };

/** What the process is told first. */
export interface HandedEnvironment {
  /** What libraries read by themselves. */
  readonly libraries: NodeJS.ProcessEnv;
  readonly services: Readonly<Record<string, NodeJS.ProcessEnv>>;
}

export interface ServicesProcessOptions {
  services: readonly ServiceName[];
  /** Of all services; each is given what it reads. */
  env: NodeJS.ProcessEnv;
  /** NATS_URL, once the server is there. A process is started before, and loads its program meanwhile. */
  natsUrl: Promise<string>;
  onEvent: (event: ServiceEvent) => void;
  /** Starts again what ended unasked; otherwise it stays down. */
  restart: boolean;
  /** Path of another copy of the program that runs them. */
  program?: string | undefined;
}

/** In MB. The start of several leaves much garbage, and a young heap that grows step by step is collected many times meanwhile. */
const youngHeapTogether = "--min-semi-space-size=16";
/** glibc gives each thread an arena of its own, which keeps what the start's compilers freed: 6 MB a process. */
const FEW_ARENAS = { MALLOC_ARENA_MAX: "2" };
const ownProgram = fileURLToPath(moduleBeside(import.meta, "services-program"));
const tailLines = 20;
const stopTimeoutMs = 35_000;

/** What services that share a process say together. */
const together: ServiceName = { service: "services", instance: "services" };

export class ServicesProcess implements AsyncDisposable {
  /** Settles when all its services can be used for the first time; throws `unavailable` if one cannot. */
  readonly ready: Promise<void>;
  readonly #options: ServicesProcessOptions;
  readonly #firstReady = Promise.withResolvers<void>();
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  readonly #tail: string[] = [];
  #child: ChildProcess | undefined;
  /** What a service says of its own failure, in one sentence. */
  #failure: { service: string; message: string } | undefined;

  constructor(options: ServicesProcessOptions) {
    this.#options = options;
    this.ready = this.#firstReady.promise;
    this.ready.catch(() => {}); // whoever waits is told; nobody need wait
    this.#running = this.#keepRunning().catch((error: unknown) => {
      if (!this.#stopping.signal.aborted) this.#firstReady.reject(error);
    });
  }

  get services(): readonly ServiceName[] {
    return this.#options.services;
  }

  /** Of the process that runs at the moment; undefined while none does. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    this.#child?.kill("SIGTERM");
    const timer = setTimeout(() => this.#child?.kill("SIGKILL"), stopTimeoutMs);
    await this.#running;
    clearTimeout(timer);
  }

  async #keepRunning(): Promise<void> {
    const backoff = createBackoff({ initialMs: 100, maxMs: 5_000 });
    for (;;) {
      const how = await this.#runOnce();
      const asked = this.#stopping.signal.aborted;
      for (const name of this.services) this.#options.onEvent({ kind: "ended", ...name, how, asked });
      this.#firstReady.reject(this.#endedBeforeReady(how));
      if (asked || !this.#options.restart) return;
      await delay(backoff.next(), this.#stopping.signal);
    }
  }

  async #runOnce(): Promise<string> {
    const startedAt = performance.now();
    const { services } = this;
    const child = fork(
      this.#options.program ?? ownProgram,
      services.map(({ service, instance }) => `${service}=${instance}`),
      {
        env: { ...platformEnvironment(this.#options.env), ...FEW_ARENAS }, // S4
        execArgv: [...process.execArgv, ...(services.length > 1 ? [youngHeapTogether] : [])],
        stdio: stdioFor(services),
        detached: true, // S5
      },
    );
    this.#child = child;
    void this.#hand(child);
    const pid = child.pid ?? 0;
    for (const name of services) this.#options.onEvent({ kind: "started", ...name, pid });
    this.#readLines(child);
    let readyCount = 0;
    child.on("message", (message: ServiceMessage) => {
      if (message.kind === "failed") {
        this.#failure ??= { service: message.service, message: message.message };
        return;
      }
      const durationMs = Math.round(performance.now() - startedAt);
      const name = services.find(({ service }) => service === message.service) ?? together;
      this.#options.onEvent({ kind: "ready", ...name, pid, durationMs, announcement: message.announcement });
      readyCount += 1;
      if (readyCount === services.length) this.#firstReady.resolve();
    });
    const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
    this.#child = undefined;
    return signal === null ? `exit code ${code}` : signal;
  }

  /** A process that is told nothing would wait for ever: it is ended, with the reason. */
  async #hand(child: ChildProcess): Promise<void> {
    const isThere = await this.#options.natsUrl.then(
      () => true,
      () => false, // whoever starts the server is told why there is none, and ends this process
    );
    if (!isThere) return;
    try {
      await handEnvironment(child, this.#options);
    } catch (error) {
      const service = this.services.map((name) => name.service).join(", ");
      const message = `${service} cannot be told its settings: ${messageFromUnknown(error)}`;
      this.#failure ??= { service, message };
      child.kill("SIGKILL");
    }
  }

  #readLines({ stdio }: ChildProcess): void {
    const { services } = this;
    const [alone] = services.length === 1 ? services : [];
    const [, stdout, stderr, _ipc, ...logs] = stdio;
    this.#readFrom(stdout, alone ?? together);
    this.#readFrom(stderr, alone ?? together);
    for (const [index, log] of logs.entries()) this.#readFrom(log, services[index] ?? together);
  }

  #readFrom(stream: unknown, name: ServiceName): void {
    createInterface({ input: stream as Readable }).on("line", (line) => {
      this.#tail.push(line);
      if (this.#tail.length > tailLines) this.#tail.shift();
      this.#options.onEvent({ kind: "line", ...name, line });
    });
  }

  #endedBeforeReady(how: string): Failure {
    const service = this.#failure?.service ?? this.services.map((service) => service.service).join(", ");
    const tail = this.#tail.map((line) => `  ${line}`).join("\n");
    const message = this.#failure?.message ?? `${service} ended before it was ready (${how}). Its last lines:\n${tail}`;
    return new LocalFailure("unavailable", message, { kind: "service_not_started", metadata: { service } });
  }
}

/** S4. What is no setting of the suite's is for libraries and programs that a service uses. */
async function handEnvironment(child: ChildProcess, { services, natsUrl, ...given }: ServicesProcessOptions) {
  const env = { ...given.env, NATS_URL: await natsUrl };
  const known = services.filter(({ service }) => listServices().includes(service)); // of another one, the process says so
  const own = known.map(async ({ service }) => [service, await variablesOfService(service, env)] as const);
  const ofServices = Object.fromEntries(await Promise.all(own));
  const read = Object.values(ofServices).flatMap((variables) => Object.entries(variables));
  const others = read.filter(([name]) => !/^(TOOLBUS|NATS)_/.test(name));
  const libraries = { ...libraryEnvironment(env), ...Object.fromEntries(others) };
  const message: HandedEnvironment = { libraries, services: ofServices };
  if (child.connected) child.send(message, () => {}); // if it is gone, its end is told
}

/** Several services have a pipe each for their log, after the IPC channel. */
function stdioFor(services: readonly ServiceName[]): ("ignore" | "pipe" | "ipc")[] {
  const logs = services.length === 1 ? [] : services.map(() => "pipe" as const);
  return ["ignore", "pipe", "pipe", "ipc", ...logs];
}
