import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createClient } from "@connectrpc/connect";
import { delay } from "#runtime/time/delay.ts";
import { EchoService } from "./echo-service.fixture.ts";
import { type EchoWorld, openConnection } from "./echo-world.fixture.ts";
import { serveOnNats } from "./server.ts";
import type { Timings } from "./timings.ts";
import { createNatsTransport } from "./transport.ts";

/*
 * One end of a call in a process of its own, which tests freeze and kill. As a module it starts such processes; as a program
 * it is one.
 */

interface Setting {
  readonly role: "server" | "client";
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly service: string;
  readonly timings?: Timings;
}

export interface EchoProcess extends AsyncDisposable {
  readonly pid: number;
  kill(signal: NodeJS.Signals): void;
  /** How many calls the process has begun. */
  readonly begun: number;
}

/** The header that tells the server of such a process how long to think. */
export const DELAY_KEY = "x-delay-ms";

/** A server that answers with its process id, or a client that holds a stream open. Resolves when it is ready. */
export async function openEchoProcess(
  world: EchoWorld,
  setting: Pick<Setting, "role" | "service" | "timings">,
): Promise<EchoProcess> {
  const { url, user, password } = world.server;
  const child = fork(new URL(import.meta.url), [JSON.stringify({ url, user, password, ...setting })]);
  let begun = 0;
  child.on("message", (message) => {
    if (message === "begun") begun += 1;
  });
  const [first] = await Promise.race([once(child, "message"), once(child, "exit")]);
  if (first !== "ready") throw new Error(`the ${setting.role} did not start: ${first}`);
  return {
    pid: child.pid ?? 0,
    kill: (signal) => void child.kill(signal),
    get begun() {
      return begun;
    },
    [Symbol.asyncDispose]: () => ended(child),
  };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

async function serve(setting: Setting): Promise<void> {
  const connection = await openConnection(setting.url, setting);
  const value = Buffer.from(String(process.pid));
  const server = await serveOnNats(
    { connection },
    {
      service: setting.service,
      ...(setting.timings && { timings: setting.timings }),
      routes: (router) =>
        router.service(EchoService, {
          async unary(_request, context) {
            process.send?.("begun");
            await delay(Number(context.requestHeader.get(DELAY_KEY) ?? 0));
            return { value };
          },
          async *serverStream(_request, context) {
            process.send?.("begun");
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

async function call(setting: Setting): Promise<void> {
  const connection = await openConnection(setting.url, setting);
  const { service, timings } = setting;
  const client = createClient(
    EchoService,
    createNatsTransport({ connection }, { service, ...(timings && { timings }) }),
  );
  void (async () => {
    for await (const _answer of client.serverStream({})) process.send?.("begun");
  })();
}

if (import.meta.main) {
  const setting: Setting = JSON.parse(process.argv[2] ?? "");
  process.on("disconnect", () => process.exit());
  await (setting.role === "server" ? serve(setting) : call(setting));
  process.send?.("ready");
}
