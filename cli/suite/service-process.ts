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
import { Failure } from "#runtime/failure/failure.ts";
import type { ServiceMessage } from "#runtime/lifecycle/run-service.ts";
import { createBackoff } from "#runtime/time/backoff.ts";
import { delay } from "#runtime/time/delay.ts";
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
  stopTimeoutMs?: number;
}

export interface ServiceProcess extends AsyncDisposable {
  readonly room: string;
  readonly instance: string;
  /** Of the process that runs at the moment; undefined while none does. */
  readonly pid: number | undefined;
  /** Settles when the service can be used for the first time; throws `unavailable` with its last lines if it cannot. */
  readonly ready: Promise<void>;
}

const tailLines = 20;

export function openServiceProcess(options: ServiceProcessOptions): ServiceProcess {
  const stopping = new AbortController();
  const firstReady = Promise.withResolvers<void>();
  firstReady.promise.catch(() => {}); // whoever waits is told; nobody need wait
  let child: ChildProcess | undefined;
  const tail: string[] = [];
  /** What the service says of its own failure, in one sentence. */
  let failure: string | undefined;

  const keepRunning = async () => {
    const backoff = createBackoff({ initialMs: 100, maxMs: 5_000 });
    for (;;) {
      const how = await runOnce();
      const asked = stopping.signal.aborted;
      options.onEvent({ kind: "ended", room: options.room, instance: options.instance, how, asked });
      firstReady.reject(endedBeforeReady(options.room, failure ?? textOfEnd(options.room, how, tail)));
      if (asked || !options.restart) return;
      await delay(backoff.next(), stopping.signal);
    }
  };

  const runOnce = async (): Promise<string> => {
    const startedAt = performance.now();
    const { room, instance } = options;
    child = fork(mainOfRoom(room), {
      env: options.env,
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      detached: true, // S4
    });
    const pid = child.pid ?? 0;
    options.onEvent({ kind: "started", room, instance, pid });
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on("line", (line) => {
        tail.push(line);
        if (tail.length > tailLines) tail.shift();
        options.onEvent({ kind: "line", room, instance, line });
      });
    }
    child.on("message", (message: ServiceMessage) => {
      if (message.kind === "failed") failure = message.message;
      if (message.kind !== "ready") return;
      const durationMs = Math.round(performance.now() - startedAt);
      options.onEvent({ kind: "ready", room, instance, pid, durationMs, announcement: message.announcement });
      firstReady.resolve();
    });
    const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
    child = undefined;
    return signal === null ? `exit code ${code}` : signal;
  };

  const running = keepRunning().catch((error: unknown) => {
    if (!stopping.signal.aborted) firstReady.reject(error);
  });

  return {
    room: options.room,
    instance: options.instance,
    get pid() {
      return child?.pid;
    },
    ready: firstReady.promise,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      child?.kill("SIGTERM");
      const timer = setTimeout(() => child?.kill("SIGKILL"), options.stopTimeoutMs ?? 35_000);
      await running;
      clearTimeout(timer);
    },
  };
}

function textOfEnd(room: string, how: string, tail: string[]): string {
  return `${room} ended before it was ready (${how}). Its last lines:\n${tail.map((line) => `  ${line}`).join("\n")}`;
}

function endedBeforeReady(room: string, message: string): Failure {
  return new Failure("unavailable", message, { reason: "SERVICE_NOT_STARTED", metadata: { service: room } });
}
