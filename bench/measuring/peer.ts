import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** A process of a measurement, which answers each order that it is sent with one message. */
export interface Peer<Answer> {
  readonly child: ChildProcess;
  /** What it said when it was ready. */
  readonly hello: Record<string, unknown>;
  /** Sends it an order; gives what it answers. */
  ask(order: object): Promise<Answer>;
}

export interface PeerOptions {
  /** What the program reads by `argumentOf`. */
  readonly argument?: unknown;
  /** Further variables. */
  readonly env?: NodeJS.ProcessEnv;
}

/** Starts a program and waits until it says `ready`; it is ended with the stack. Who waits for one that ends is told. */
export async function openPeer<Answer>(
  stack: AsyncDisposableStack,
  program: URL,
  { argument = {}, env = {} }: PeerOptions = {},
): Promise<Peer<Answer>> {
  const name = fileURLToPath(program);
  const child = fork(program, [JSON.stringify(argument)], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const ended = once(child, "exit");
  stack.defer(async () => {
    child.kill();
    await ended;
  });
  const broken = ended.then(([code]) => {
    throw new Error(`${name} ended with ${code}`);
  });
  broken.catch(() => {}); // matters only while the process is waited for
  child.on("message", (message: { kind?: string; text?: string }) => {
    if (message.kind === "fault") console.error(`${name}: ${message.text}`);
  });
  const next = async () => (await Promise.race([once(child, "message"), broken]))[0];
  const hello = await next();
  if (hello.kind !== "ready") throw new Error(`${name}: ${JSON.stringify(hello)}`);
  return {
    child,
    hello,
    async ask(order) {
      const answered = next();
      child.send(order);
      const answer = await answered;
      if (answer.kind === "fault") throw new Error(`${name}: ${JSON.stringify(order)}: ${answer.text}`);
      return answer;
    },
  };
}
