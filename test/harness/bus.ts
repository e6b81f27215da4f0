import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AuditEvent, AuditKind } from "../../gen/es/toolbus/audit/v1/audit_pb.ts";
import { readAuditBackwards } from "../../runtime/audit/trail.ts";
import { type Bus, type BusOptions, openBus } from "../../runtime/bus/bus.ts";
import type { BusLogin } from "../../runtime/bus/credentials/login.ts";
import { followTrustList } from "../../runtime/bus/credentials/trust/trust-list.ts";
import { findNatsServer } from "../../runtime/bus/nats-server/find/find-nats-server.ts";
import { type NatsServer, type NatsServerOptions, openNatsServer } from "../../runtime/bus/nats-server/nats-server.ts";
import { busUsers } from "../../services/bus-users.ts";
import { refuseViolations } from "./violations.ts";

export interface TestServer extends AsyncDisposable {
  readonly url: string;
  /** May do everything. */
  readonly login: BusLogin;
  /** The keys of every service, for `TOOLBUS_BUS_CREDENTIALS`. */
  readonly credentials: string;
  readonly directory: string;
  /** Of the server that runs at the moment. */
  readonly pid: number;
  /** Ends the server as a crash does. */
  kill(): Promise<void>;
  /** Starts it again on the same port and store. */
  restart(): Promise<void>;
}

export interface TestBus extends Bus {
  readonly server: TestServer;
  /** One more connection to the same server. */
  connect(options?: Partial<BusOptions>): Promise<Bus>;
}

/** A real server on a free port with an empty store in a temporary directory, which goes with it. */
export async function openTestServer(options: Partial<NatsServerOptions> = {}): Promise<TestServer> {
  const binary = options.binary ?? process.env.TOOLBUS_NATS_SERVER ?? (await findNatsServer());
  const directory = await mkdtemp(join(tmpdir(), "toolbus-test-bus-"));
  let server: NatsServer = await openNatsServer({ directory, binary, users: busUsers, ...options });
  return {
    url: server.url,
    login: server.login,
    credentials: server.credentials,
    directory,
    get pid() {
      return server.pid;
    },
    async kill() {
      process.kill(server.pid, "SIGKILL");
      await server.exited;
    },
    async restart() {
      await server[Symbol.asyncDispose]();
      server = await openNatsServer({ users: busUsers, ...options, directory, binary, port: server.port });
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await refuseViolations(join(directory, "nats-server.log"), server.credentials).finally(() =>
        rm(directory, { recursive: true, force: true }),
      );
    },
  };
}

/** A fresh server, which waits long for a busy process, and a bus on it; disposing ends the connections made here, then the server. */
export async function openTestBus(options: Partial<BusOptions> = {}): Promise<TestBus> {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await openTestServer({ pingMax: 100 }));
  const trust = await followTrustList(server.credentials);
  const connect = async (more: Partial<BusOptions> = {}) => {
    const { url, login } = server;
    return opened.use(await openBus({ url, login, trust, name: "test", ...options, ...more }));
  };
  const opened = stack.use(new AsyncDisposableStack());
  const bus = await connect();
  const owned = stack.move();
  return { ...bus, server, connect, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** What the audit trail tells of a kind, the latest first. */
export async function auditOf(bus: Bus, kind: AuditKind): Promise<AuditEvent[]> {
  const events = await Array.fromAsync(readAuditBackwards(bus, 0, AbortSignal.timeout(5_000)));
  return events.filter((event) => event.kind === kind);
}
