import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NatsConnection } from "@nats-io/nats-core";
import { connectOnce } from "#runtime/bus/credentials/connect.ts";
import type { BusLogin } from "#runtime/bus/credentials/login.ts";
import { type NatsServer, openNatsServer } from "#runtime/bus/nats-server/nats-server.ts";
import { retryWhile } from "#runtime/time/retry/retry.ts";

/** A nats-server of its own with any number of connections, for the tests of this folder. */
export interface EchoWorld extends AsyncDisposable {
  readonly server: NatsServer;
  connect(): Promise<{ connection: NatsConnection }>;
  /** Starts the server again on its port after it was killed. */
  restart(): Promise<void>;
}

/** Its server waits long for a busy process unless told otherwise: many tests have both ends of 64 MiB in one. */
export async function openEchoWorld({ pingMax = 100 } = {}): Promise<EchoWorld> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "echo-world-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  let server = await openNatsServer({ directory, pingMax });
  stack.defer(async () => server[Symbol.asyncDispose]());
  const { port } = server;
  const opened = stack.move();
  const connections: NatsConnection[] = [];
  return {
    get server() {
      return server;
    },
    async connect() {
      const connection = await openConnection(server);
      connections.push(connection);
      return { connection };
    },
    async restart() {
      await server.exited;
      server = await openNatsServer({ directory, port, pingMax });
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(connections.map((connection) => connection.close()));
      await opened.disposeAsync();
    },
  };
}

/** Comes back as soon as the server does, as the suite's own connections do, and on a busy machine is tried more than once, as these are. */
export function openConnection({ url, login }: { url: string; login: BusLogin }): Promise<NatsConnection> {
  const waits = { initialMs: 50, maxMs: 500, patienceMs: 15_000 };
  return retryWhile(
    () => true,
    () => connectOnce({ url, login, name: "test" }),
    waits,
  );
}
