// One service in a process of its own.
//
// S1  A process that ends without being asked to is started again, with backoff; its end is told.
// S2  It holds an IPC channel to this process and ends when the channel closes: a killed suite leaves no service behind.
// S3  Disposing sends SIGTERM, waits for the drain, and sends SIGKILL after `stopTimeoutMs`: a service ends its own drain
//     after 30 s at the latest, so that is the longer time.
// S4  It has a process group of its own: Ctrl-C in a terminal reaches this process alone, which then stops it in order.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Failure } from "#runtime/failure/failure.ts";
import { LocalFailure } from "#runtime/failure/local-failure.ts";
import type { ServiceMessage } from "#runtime/lifecycle/run-service.ts";
import { delay } from "#runtime/time/delay.ts";
import { createBackoff } from "#runtime/time/retry/backoff.ts";
import { mainOfRoom } from "./rooms.ts";

/** What a service says of itself when it is ready; the gateway its `url`. */
export type Announcement = Record<string, unknown>;

export type ServiceEvent =
  | { kind: "started"; room: string; instance: string; pid: number }
  | { kind: "ready"; room: string; instance: string; pid: number; durationMs: number; announcement: Announcement }
  | { kind: "ended"; room: string; instance: string; how: string; asked: boolean }
  | { kind: "line"; room: string; instance: string; line: string };

export interface ServiceProcessOptions {
  room: string;
  instance: string;
  env: NodeJS.ProcessEnv;
  onEvent: (event: ServiceEvent) => void;
  /** Starts again what ended unasked; otherwise it stays down. */
  restart: boolean;
}

const tailLines = 20;
const stopTimeoutMs = 35_000;

export class ServiceProcess implements AsyncDisposable {
  readonly room: string;
  readonly instance: string;
  /** Settles when the service can be used for the first time; throws `unavailable` with its last lines if it cannot. */
  readonly ready: Promise<void>;
  readonly #options: ServiceProcessOptions;
  readonly #firstReady = Promise.withResolvers<void>();
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  readonly #tail: string[] = [];
  #child: ChildProcess | undefined;
  /** What the service says of its own failure, in one sentence. */
  #failure: string | undefined;

  constructor(options: ServiceProcessOptions) {
    this.#options = options;
    this.room = options.room;
    this.instance = options.instance;
    this.ready = this.#firstReady.promise;
    this.ready.catch(() => {}); // whoever waits is told; nobody need wait
    this.#running = this.#keepRunning().catch((error: unknown) => {
      if (!this.#stopping.signal.aborted) this.#firstReady.reject(error);
    });
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
    const { room, instance } = this;
    const backoff = createBackoff({ initialMs: 100, maxMs: 5_000 });
    for (;;) {
      const how = await this.#runOnce();
      const asked = this.#stopping.signal.aborted;
      this.#options.onEvent({ kind: "ended", room, instance, how, asked });
      this.#firstReady.reject(endedBeforeReady(room, this.#failure ?? textOfEnd(room, how, this.#tail)));
      if (asked || !this.#options.restart) return;
      await delay(backoff.next(), this.#stopping.signal);
    }
  }

  async #runOnce(): Promise<string> {
    const startedAt = performance.now();
    const child = fork(mainOfRoom(this.room), {
      env: this.#options.env,
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      detached: true, // S4
    });
    this.#child = child;
    const pid = child.pid ?? 0;
    this.#options.onEvent({ kind: "started", room: this.room, instance: this.instance, pid });
    this.#readLines(child);
    child.on("message", (message: ServiceMessage) => {
      if (message.kind === "failed") this.#failure = message.message;
      if (message.kind === "ready") this.#isReady(pid, performance.now() - startedAt, message.announcement);
    });
    const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
    this.#child = undefined;
    return signal === null ? `exit code ${code}` : signal;
  }

  #readLines({ stdout, stderr }: ChildProcess): void {
    const { room, instance } = this;
    for (const stream of [stdout, stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on("line", (line) => {
        this.#tail.push(line);
        if (this.#tail.length > tailLines) this.#tail.shift();
        this.#options.onEvent({ kind: "line", room, instance, line });
      });
    }
  }

  #isReady(pid: number, tookMs: number, announcement: Announcement): void {
    const { room, instance } = this;
    this.#options.onEvent({ kind: "ready", room, instance, pid, durationMs: Math.round(tookMs), announcement });
    this.#firstReady.resolve();
  }
}

function textOfEnd(room: string, how: string, tail: string[]): string {
  return `${room} ended before it was ready (${how}). Its last lines:\n${tail.map((line) => `  ${line}`).join("\n")}`;
}

function endedBeforeReady(room: string, message: string): Failure {
  return new LocalFailure("unavailable", message, { kind: "service_not_started", metadata: { service: room } });
}
