import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { openBus } from "#runtime/bus/bus.ts";
import { openNatsServer } from "#runtime/bus/nats-server/nats-server.ts";
import { until } from "#runtime/time/until.ts";
import { busUsers } from "../../services/bus-users.ts";
import { clientFor } from "../../services/clients.ts";
import { cpuMicrosecondsOf } from "../loop/figures/cpu.ts";
import { openPeer } from "../measuring/peer.ts";
import {
  AGENT,
  CALLERS_ROUTER,
  INTERNAL_TOOL,
  type Order,
  PROVIDER,
  type Report,
  SOURCE,
  TOOL,
  WATCHERS_ROUTER,
} from "./setting.ts";

/** A real nats-server, two routers, one who calls and one who watches: five processes beside this one. */
export interface RouterWorld extends AsyncDisposable {
  measure(order: Order): Promise<Report>;
  /** What all five have used of the processors so far. */
  cpuMs(): number;
  /** The same of the router that is called. */
  routerCpuMs(): number;
}

export async function openRouterWorld(): Promise<RouterWorld> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "bench-router-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const nats = await openNatsServer({ directory: join(directory, "nats"), users: busUsers });
  const { url, login: admin, credentials, pid } = stack.use(nats);
  const pids = [pid];
  const login = { url, login: admin };
  const env = {
    ...(await writeConfiguration(directory)),
    TOOLBUS_LOG_LEVEL: "error",
    NATS_URL: url,
    TOOLBUS_BUS_CREDENTIALS: credentials,
  };
  const open = async (program: string, argument: unknown, env: NodeJS.ProcessEnv = {}) => {
    const peer = await openPeer<Report>(stack, new URL(`${program}.ts`, import.meta.url), { argument, env });
    pids.push(peer.child.pid ?? 0);
    return peer;
  };
  const called = await open("router", CALLERS_ROUTER, env);
  await open("router", WATCHERS_ROUTER, env);
  const bus = stack.use(await openBus({ ...login, name: "bench" }));
  const sessionId = "measured";
  const sessions = clientFor(bus, SessionService, { process: CALLERS_ROUTER });
  await until(() => sessions.createSession({ agent: AGENT, sessionId }).catch(() => undefined)); // its file is being read
  await open("watcher", login);
  const caller = await open("caller", { ...login, sessionId });
  const owned = stack.move();
  return {
    measure: (order) => caller.ask(order),
    cpuMs: () => pids.reduce((sum, one) => sum + cpuMicrosecondsOf(one) / 1_000, 0),
    routerCpuMs: () => cpuMicrosecondsOf(called.child.pid ?? 0) / 1_000,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** One agent with a tool of each kind. */
async function writeConfiguration(directory: string): Promise<NodeJS.ProcessEnv> {
  const [agents, tools] = [join(directory, "agents"), join(directory, "tools")];
  await Promise.all([agents, tools].map((path) => mkdir(path, { recursive: true })));
  const tool = { name: TOOL, executionType: "external", visible: false, effect: "pure", timeout: 30_000 };
  const internal = { name: INTERNAL_TOOL, executionType: "internal" };
  const sources = [{ name: SOURCE, provider: PROVIDER, config: {} }];
  const use = [TOOL, INTERNAL_TOOL, `@${SOURCE}/*`];
  await writeFile(join(agents, `${AGENT}.json`), JSON.stringify({ name: AGENT, sources, tools: { use } }));
  for (const one of [tool, internal]) await writeFile(join(tools, `${one.name}.json`), JSON.stringify(one));
  return { TOOLBUS_AGENTS: agents, TOOLBUS_TOOLS: tools, TOOLBUS_PROVIDERS: `${PROVIDER}=${PROVIDER}` };
}
