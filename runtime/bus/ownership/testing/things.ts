import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { TestBus } from "../../../../test/harness/bus.ts";
import { until } from "../../../time/until.ts";
import type { Bus } from "../../bus.ts";
import { type Ownership, openOwnership } from "../ownership.ts";

export class Thing implements AsyncDisposable {
  isClosed = false;
  readonly owner: string;
  readonly argument: string;
  constructor(owner: string, argument: string) {
    this.owner = owner;
    this.argument = argument;
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.isClosed = true;
  }
}

export type Things = Ownership<Thing, string>;

export const openThings = (
  on: Bus,
  instance: string,
  more: { open?: (key: string) => Promise<Thing>; silenceMs?: number } = {},
): Promise<Things> =>
  openOwnership<Thing, string>(on, {
    kind: "thing",
    instance,
    open: async (_key, argument) => new Thing(instance, argument),
    ...more,
  });

/** A child process that owns, with what it has told so far. */
export async function openOwnerProcess(server: TestBus["server"], instance: string) {
  const { url, login } = server;
  const script = fileURLToPath(new URL("./owner.ts", import.meta.url));
  const child = fork(script, [JSON.stringify({ url, login, instance })], { execArgv: [] });
  const told: string[] = [];
  child.on("message", ({ event, key }: { event: string; key: string }) => told.push(`${event} ${key}`.trim()));
  const heard = (line: string) => until(() => told.includes(line), { timeoutMs: 10_000, what: `${instance}: ${line}` });
  await heard("ready");
  return {
    told,
    heard,
    send: (message: { acquire: string }) => child.send(message),
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
  };
}
