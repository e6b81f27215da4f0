// The NATS server of one machine, kept running: one that ends unasked is started again on the same port and store, which
// its clients find by themselves.

import type { UsersOf } from "#runtime/bus/credentials/directory.ts";
import type { FindOptions } from "#runtime/bus/nats-server/find/executable.ts";
import { openNatsServer } from "#runtime/bus/nats-server/nats-server.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { delay } from "#runtime/time/delay.ts";
import { createBackoff } from "#runtime/time/retry/backoff.ts";

export interface KeptNats extends AsyncDisposable {
  readonly url: string;
  /** Of the server that runs at the moment, or ran last. */
  readonly pid: number;
}

export interface KeptNatsOptions {
  directory: string;
  /** Where the keys of those are who may sign in. */
  credentials: string;
  users: UsersOf;
  binary?: string | undefined;
  find: FindOptions;
  syncInterval: "default" | "always";
  onEnded: (how: string) => void;
}

export async function openKeptNats({ onEnded, ...options }: KeptNatsOptions): Promise<KeptNats> {
  const stopping = new AbortController();
  let server = await openNatsServer(options);
  const { url, port } = server;

  const keepRunning = async () => {
    const backoff = createBackoff({ initialMs: 50, maxMs: 5_000 });
    for (;;) {
      const how = await server.exited;
      if (stopping.signal.aborted) return;
      onEnded(how);
      await delay(backoff.next(), stopping.signal);
      try {
        server = await openNatsServer({ ...options, port });
        backoff.reset();
        if (stopping.signal.aborted) return server[Symbol.asyncDispose]();
      } catch (error) {
        onEnded(`it did not start again: ${messageFromUnknown(error)}`);
      }
    }
  };
  const running = keepRunning().catch((error: unknown) => {
    if (!stopping.signal.aborted) throw error;
  });

  return {
    url,
    get pid() {
      return server.pid;
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await server[Symbol.asyncDispose]();
      await running;
    },
  };
}
