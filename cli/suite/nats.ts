// The NATS server of one machine, kept running: one that ends unasked is started again on the same port and store, which
// its clients find by themselves.

import { openNatsServer } from "#runtime/bus/nats-server/nats-server.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { delay } from "#runtime/time/delay.ts";
import { createBackoff } from "#runtime/time/retry/backoff.ts";

export interface KeptNats extends AsyncDisposable {
  readonly url: string;
  readonly user: string;
  readonly password: string;
  /** Of the server that runs at the moment, or ran last. */
  readonly pid: number;
}

export interface KeptNatsOptions {
  directory: string;
  binary?: string | undefined;
  syncInterval: "default" | "always";
  onEnded: (how: string) => void;
}

export async function openKeptNats({ onEnded, ...options }: KeptNatsOptions): Promise<KeptNats> {
  const stopping = new AbortController();
  let server = await openNatsServer(options);
  const { url, user, password, port } = server;

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
    user,
    password,
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
