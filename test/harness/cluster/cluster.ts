import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Bus, type BusOptions, openBus } from "#runtime/bus/bus.ts";
import { readLogin, writeCredentials } from "#runtime/bus/credentials/directory.ts";
import { ADMIN } from "#runtime/bus/credentials/login.ts";
import { findNatsServer } from "#runtime/bus/nats-server/find/find-nats-server.ts";
import { type ChildProcess, openChildProcess } from "#runtime/lifecycle/child-process.ts";
import { until } from "#runtime/time/until.ts";
import { busUsers } from "../../../services/bus-users.ts";
import { readCompose } from "./compose.ts";

export interface ClusterNode {
  /** As JetStream names it when it tells who leads. */
  readonly name: string;
  readonly url: string;
  /** Ends it as a crash does. */
  kill(): Promise<void>;
  /** Starts it again on the same ports and store. */
  restart(): Promise<void>;
}

export interface Cluster extends AsyncDisposable {
  /** All nodes, with commas between. */
  readonly url: string;
  /** The keys of every service. */
  readonly credentials: string;
  readonly nodes: readonly ClusterNode[];
  /** One more connection, closed with the cluster. */
  connect(options?: Partial<BusOptions>): Promise<Bus>;
}

interface Ports {
  readonly client: number;
  readonly monitor: number;
  readonly route: number;
}

/** The NATS nodes of docker-compose.yml with its configuration, as processes on the loopback interface that know each other. */
export async function openCluster(): Promise<Cluster> {
  await using stack = new AsyncDisposableStack();
  const binary = process.env.TOOLBUS_NATS_SERVER ?? (await findNatsServer());
  const directory = await mkdtemp(join(tmpdir(), "toolbus-test-cluster-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const compose = readCompose({ NATS_ROUTES_PASSWORD: "0123456789abcdef" });
  const { path: credentials } = await writeCredentials(join(directory, "bus"), busUsers);
  const login = await readLogin(credentials, ADMIN);
  const names = Object.keys(compose.services).filter((name) => compose.services[name]?.image?.startsWith("nats:"));
  const ports = await freePorts(names);
  const nodes = names.map((name) => {
    const config = join(directory, `${name}.conf`);
    const words = compose.services[name]?.command ?? [];
    const args = words.map((word) => (word.startsWith("--config=") ? `--config=${config}` : word));
    const text = onLoopback(compose.configs.nats?.content ?? "", { name, ports, store: join(directory, name) });
    return { name, config, text, start: () => openChildProcess({ command: binary, args, inputGraceMs: 0 }) };
  });
  await Promise.all(nodes.map(({ config, text }) => writeFile(config, text)));
  const running = new Map<string, ChildProcess>();
  stack.defer(async () => {
    await Promise.all([...running.values()].map((child) => child[Symbol.asyncDispose]()));
  });
  await Promise.all(nodes.map(async ({ name, start }) => running.set(name, await start())));
  await Promise.all(names.map((name) => until(() => isHealthy(portsOf(ports, name).monitor), { timeoutMs: 15_000 })));
  const url = names.map((name) => `nats://127.0.0.1:${portsOf(ports, name).client}`).join(",");
  const connections = stack.use(new AsyncDisposableStack());
  const owned = stack.move();
  return {
    url,
    credentials,
    nodes: nodes.map(({ name, start }) => ({
      name,
      url: `nats://127.0.0.1:${portsOf(ports, name).client}`,
      kill: async () => void (await running.get(name)?.kill()),
      restart: async () => void running.set(name, await start()),
    })),
    connect: async (options = {}) =>
      connections.use(await openBus({ url, login, name: "test", replicas: 3, ...options })),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A node is healthy when it has heard of the leader that the nodes elected. */
async function isHealthy(monitor: number): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${monitor}/healthz`).catch(() => undefined); // not listening yet
  return response?.ok === true;
}

/** Only what a machine of one's own makes necessary is another: addresses, ports and the place of the store. */
function onLoopback(
  content: string,
  { name, ports, store }: { name: string; ports: ReadonlyMap<string, Ports>; store: string },
): string {
  const own = portsOf(ports, name);
  const changes: [string, string][] = [
    ["listen: 0.0.0.0:4222", `listen: 127.0.0.1:${own.client}`],
    ["http: 127.0.0.1:8222", `http: 127.0.0.1:${own.monitor}`],
    ['include "users.conf"', 'include "bus/users.conf"'],
    ["store_dir: /data", `store_dir: ${JSON.stringify(store)}`],
    ["listen: 0.0.0.0:6222", `listen: 127.0.0.1:${own.route}`],
    ...[...ports].map(([node, { route }]): [string, string] => [`@${node}:6222`, `@127.0.0.1:${route}`]),
  ];
  return changes.reduce((text, [from, to]) => {
    if (text.split(from).length !== 2) throw new Error(`the configuration does not hold "${from}" once`);
    return text.replace(from, to);
  }, content);
}

function portsOf(ports: ReadonlyMap<string, Ports>, name: string): Ports {
  const found = ports.get(name);
  if (found === undefined) throw new Error(`${name} has no ports`);
  return found;
}

/** All are taken before any is given back, so that no two are the same. */
async function freePorts(names: readonly string[]): Promise<Map<string, Ports>> {
  const servers = names.flatMap(() => [createServer(), createServer(), createServer()]);
  for (const server of servers) server.listen(0, "127.0.0.1");
  await Promise.all(servers.map((server) => once(server, "listening")));
  const free = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  const next = () => free.shift() ?? 0;
  return new Map(names.map((name) => [name, { client: next(), monitor: next(), route: next() }]));
}
