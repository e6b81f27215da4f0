import { createClient, type HandlerContext } from "@connectrpc/connect";
import type { BusLogin } from "#runtime/bus/credentials/login.ts";
import { delay } from "#runtime/time/delay.ts";
import type { Timings } from "../call/timings.ts";
import { createNatsTransport } from "../client/transport.ts";
import { serveOnNats } from "../server/server.ts";
import { EchoService } from "./echo-service.ts";
import { openConnection } from "./echo-world.ts";

/* One end of calls as a program of its own; `echo-process.ts` starts it. */

export interface Setting {
  /** `server` answers with its process id; `client` holds a stream open; `burst` sends unary calls all at once. */
  readonly role: "server" | "client" | "burst";
  readonly url: string;
  readonly login: BusLogin;
  readonly service: string;
  readonly timings?: Timings;
  /** How many calls a burst has. */
  readonly calls?: number;
}

/** What the program says to the process that started it. */
export type Said =
  | { kind: "ready" }
  /** A call has begun. */
  | { kind: "begun" }
  /** An answer to "memory". */
  | { kind: "memory"; usage: NodeJS.MemoryUsage; produced: number }
  | { kind: "burst"; answers: number[]; failures: string[] };

/** The header that tells the server how long to think. */
export const DELAY_KEY = "x-delay-ms";
/** The header that tells the server to stream so many numbered messages. */
export const COUNT_KEY = "x-count";
export const NUMBERED_BYTES = 256 * 1024;

/** How many numbered messages the server has been asked for by its streams' senders. */
let produced = 0;

function say(said: Said): void {
  process.send?.(said);
}

async function serve(setting: Setting): Promise<void> {
  const connection = await openConnection(setting);
  const value = Buffer.from(String(process.pid));
  const server = await serveOnNats(
    { connection },
    {
      service: setting.service,
      ...(setting.timings && { timings: setting.timings }),
      routes: (router) =>
        router.service(EchoService, {
          async unary(_request, context) {
            say({ kind: "begun" });
            await delay(Number(context.requestHeader.get(DELAY_KEY) ?? 0));
            return { value };
          },
          async *serverStream(_request, context) {
            say({ kind: "begun" });
            yield* numberedMessages(context);
            yield { value };
            await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
          },
        }),
    },
  );
  process.once("SIGTERM", async () => {
    await server[Symbol.asyncDispose]();
    process.exit();
  });
}

function* numberedMessages(context: HandlerContext) {
  const count = Number(context.requestHeader.get(COUNT_KEY) ?? 0);
  for (let number = 0; number < count; number += 1) {
    const value = Buffer.alloc(NUMBERED_BYTES);
    value.writeUInt32BE(number);
    produced += 1;
    yield { value };
  }
}

async function openClient(setting: Setting) {
  const connection = await openConnection(setting);
  const { service, timings } = setting;
  return createClient(EchoService, createNatsTransport({ connection }, { service, ...(timings && { timings }) }));
}

async function call(setting: Setting): Promise<void> {
  const client = await openClient(setting);
  void (async () => {
    for await (const _answer of client.serverStream({})) say({ kind: "begun" });
  })();
}

async function burst(setting: Setting): Promise<void> {
  const client = await openClient(setting);
  const calls = Array.from({ length: setting.calls ?? 1 }, () => client.unary({}));
  void Promise.allSettled(calls).then((outcomes) => {
    const answers = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value.value.length] : []));
    const failures = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [String(outcome.reason)] : []));
    say({ kind: "burst", answers, failures });
  });
}

if (import.meta.main) {
  const setting: Setting = JSON.parse(process.argv[2] ?? "");
  process.on("disconnect", () => process.exit());
  process.on("message", () => {
    for (let round = 0; round < 2; round += 1) globalThis.gc?.(); // the second ends the sweeping of the first
    say({ kind: "memory", usage: process.memoryUsage(), produced });
  });
  await { server: serve, client: call, burst }[setting.role](setting);
  say({ kind: "ready" });
}
