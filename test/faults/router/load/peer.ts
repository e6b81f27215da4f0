import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Login } from "../setting.ts";

export interface Peer<Word> extends AsyncDisposable {
  send(order: object): void;
  /** Rejects when it ends by itself. */
  readonly broken: Promise<never>;
  readonly onWord: (take: (word: Word) => void) => void;
}

/** A process of those who act outside of the routers; ready when this resolves. */
export async function openPeer<Word extends { kind: string }>(program: string, login: Login): Promise<Peer<Word>> {
  const url = new URL(`${program}.ts`, import.meta.url);
  const child: ChildProcess = fork(url, [JSON.stringify(login)], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const takers = new Set<(word: Word) => void>();
  const ended = once(child, "exit");
  const broken = ended.then(([code]): never => {
    throw new Error(`the ${program} ended with ${code}`);
  });
  broken.catch(() => {}); // matters only to who waits for it
  const ready = Promise.withResolvers<void>();
  child.on("message", (word: Word) => {
    if (word.kind === "ready") ready.resolve();
    else for (const take of takers) take(word);
  });
  await Promise.race([ready.promise, broken]);
  return {
    send: (order) => void child.send(order),
    broken,
    onWord: (take) => void takers.add(take),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
