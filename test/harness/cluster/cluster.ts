import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Bus, type BusOptions, openBus } from "#runtime/bus/bus.ts";
import { readLogin, writeCredentials } from "#runtime/bus/credentials/directory.ts";
import { ADMIN } from "#runtime/bus/credentials/login.ts";
import { findNatsServer } from "#runtime/bus/nats-server/find/find-nats-server.ts";
import { type ChildProcess, openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { until } from "#runtime/time/until.ts";
import { freePorts } from "../../../examples/free-port.ts";
import { busUsers } from "../../../services/bus-users.ts";
import { readCompose } from "./compose.ts";

interface ClusterNode {
  /** As JetStream names it when it tells who leads. */
  readonly name: string;
  readonly url: string;
  /** Where it tells of itself over HTTP. */
  readonly monitorUrl: string;
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

/** How somewhere NATS nodes are started. */
export interface ClusterForm {
  readonly names: readonly string[];
  /** Of the file that `--config` names, the same for all. */
  readonly config: string;
  args(name: string): readonly string[];
  /** By which the others reach it. */
  hostOf(name: string): string;
  readonly env?: NodeJS.ProcessEnv;
}

function formOfCompose(): ClusterForm {
  const { services, configs } = readCompose({ NATS_ROUTES_PASSWORD: "0123456789abcdef" });
  return {
    names: Object.keys(services).filter((name) => services[name]?.image?.startsWith("nats:")),
    config: configs.nats?.content ?? "",
    args: (name) => services[name]?.command ?? [],
    hostOf: (name) => name,
  };
}

/** NATS nodes, those of docker-compose.yml unless told, as processes on the loopback interface that know each other. */
export async function openCluster(form = formOfCompose()): Promise<Cluster> {
  await using stack = new AsyncDisposableStack();
  const binary = process.env.TOOLBUS_NATS_SERVER ?? (await findNatsServer());
  const directory = await mkdtemp(join(tmpdir(), "toolbus-test-cluster-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const { path: credentials } = await writeCredentials(join(directory, "bus"), busUsers);
  const login = await readLogin(credentials, ADMIN);
  const { names, env } = form;
  const free = await freePorts(3 * names.length);
  const next = () => free.shift() ?? 0;
  const ports = new Map(names.map((name) => [name, { client: next(), monitor: next(), route: next() }]));
  const nodes = names.map((name) => {
    const config = join(directory, `${name}.conf`);
    const words = form.args(name).map((word) => (word.startsWith("--config=") ? `--config=${config}` : word));
    const args = words.map((word) => withRoutes(word, form, ports));
    const text = withRoutes(onLoopback(form.config, portsOf(ports, name), join(directory, name)), form, ports);
    const start = () => openChildProcess({ command: binary, args, inputGraceMs: 0, ...(env && { env }) });
    return { name, config, text, start };
  });
  await Promise.all(nodes.map(({ config, text }) => writeFile(config, text)));
  const running = new Map<string, ChildProcess>();
  stack.defer(async () => {
    await Promise.all([...running.values()].map((child) => child[Symbol.asyncDispose]()));
  });
  await Promise.all(nodes.map(async ({ name, start }) => running.set(name, await start())));
  await Promise.all(names.map((name) => until(() => isHealthy(portsOf(ports, name).monitor), { timeoutMs: 60_000 })));
  const url = names.map((name) => `nats://127.0.0.1:${portsOf(ports, name).client}`).join(",");
  const connections = stack.use(new AsyncDisposableStack());
  const owned = stack.move();
  return {
    url,
    credentials,
    nodes: nodes.map(({ name, start }) => ({
      name,
      url: `nats://127.0.0.1:${portsOf(ports, name).client}`,
      monitorUrl: `http://127.0.0.1:${portsOf(ports, name).monitor}`,
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
function onLoopback(content: string, own: Ports, store: string): string {
  const changes: [RegExp, string][] = [
    [/listen: 0\.0\.0\.0:4222/g, `listen: 127.0.0.1:${own.client}`],
    [/http: [\d.]+:8222/g, `http: 127.0.0.1:${own.monitor}`],
    [/include "users\.conf"/g, 'include "bus/users.conf"'],
    [/store_dir: \/data/g, `store_dir: ${JSON.stringify(store)}`],
    [/listen: 0\.0\.0\.0:6222/g, `listen: 127.0.0.1:${own.route}`],
  ];
  return changes.reduce((text, [from, to]) => {
    if (text.match(from)?.length !== 1) throw new Error(`the configuration does not hold ${from} once`);
    return text.replace(from, to);
  }, content);
}

/** Routes stand in the configuration, or in the arguments. */
function withRoutes(text: string, { names, hostOf }: ClusterForm, ports: ReadonlyMap<string, Ports>): string {
  return names.reduce(
    (all, name) => all.replace(`@${hostOf(name)}:6222`, `@127.0.0.1:${portsOf(ports, name).route}`),
    text,
  );
}

function portsOf(ports: ReadonlyMap<string, Ports>, name: string): Ports {
  const found = ports.get(name);
  if (found === undefined) throw new Error(`${name} has no ports`);
  return found;
}
