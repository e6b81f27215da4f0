import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { InboxService } from "#gen/toolbus/space/v1/inbox_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { type Bus, openBus } from "#runtime/bus/bus.ts";
import { until } from "#runtime/time/until.ts";
import { clientFor } from "../../../services/clients.ts";
import { writeFiles } from "../../harness/agents/write-files.ts";
import { openTestServer, type TestServer } from "../../harness/bus.ts";
import { type FaultyService, openFaultyService } from "../processes/faulty-service.ts";
import { openPeer, type Peer } from "./load/peer.ts";
import { agentName, type SubmitterWord, tools, type WatcherWord } from "./setting.ts";

/** A broker, three routers, spaces, those who watch and those who submit: each a process of its own. */
export interface World extends AsyncDisposable {
  readonly routers: readonly FaultyService[];
  readonly watchers: Peer<WatcherWord>;
  readonly submitters: Peer<SubmitterWord>;
  readonly sessionIds: readonly string[];
  readonly clients: Clients;
  readonly bus: Bus;
  /** What ended without being killed. */
  readonly unaskedEnds: readonly string[];
}

export type Clients = ReturnType<typeof clientsOn>;

const routers = ["tool-router-1", "tool-router-2", "tool-router-3"];
/** Inboxes that nobody reads stay short. */
const sessions = 100;
const patience = { timeoutMs: 60_000 };

export async function openWorld(tree: string): Promise<World> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "toolbus-faults-router-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const broker = stack.use(await openTestServer());
  await writeCatalogue(directory);
  const unaskedEnds: string[] = [];
  const start = (service: string, instance: string) => {
    const env = { ...process.env, ...environmentOf(broker, directory, instance) };
    return stack.use(
      openFaultyService({ tree, service, instance, env, onUnaskedEnd: (how) => void unaskedEnds.push(how) }),
    );
  };
  const struck = routers.map((instance) => start("tool-router", instance));
  const spaces = start("spaces", "spaces-1");
  await Promise.all([...struck, spaces].map((service) => service.ready()));
  const login = { url: broker.url, login: broker.login };
  const bus = stack.use(await openBus({ ...login, name: "faults" }));
  const clients = clientsOn(bus);
  const sessionIds = Array.from({ length: sessions }, (_, index) => `session-${index + 1}`);
  for (const sessionId of sessionIds) {
    const create = () => clients.sessions.createSession({ agent: agentName, sessionId });
    await until(() => create().catch(notYet), patience);
  }
  const watchers = stack.use(await openPeer<WatcherWord>("watchers", login));
  const submitters = stack.use(await openPeer<SubmitterWord>("submitters", login));
  const owned = stack.move();
  return {
    routers: struck,
    watchers,
    submitters,
    sessionIds,
    clients,
    bus,
    unaskedEnds,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Its agent's file is being read. */
function notYet(): undefined {}

function clientsOn(bus: Bus) {
  return {
    router: clientFor(bus, ToolService),
    sessions: clientFor(bus, SessionService),
    calls: clientFor(bus, ToolCallService),
    inbox: clientFor(bus, InboxService),
  };
}

function environmentOf(broker: TestServer, directory: string, instance: string): NodeJS.ProcessEnv {
  return {
    NATS_URL: broker.url,
    TOOLBUS_BUS_CREDENTIALS: broker.credentials,
    TOOLBUS_INSTANCE: instance,
    TOOLBUS_AGENTS: join(directory, "agents"),
    TOOLBUS_TOOLS: join(directory, "tools"),
    TOOLBUS_LOG_LEVEL: "warn",
  };
}

async function writeCatalogue(directory: string): Promise<void> {
  const write = (kind: string, name: string, content: object) =>
    writeFiles(directory, { [`${kind}/${name}.json`]: { name, ...content } });
  for (const { name, isAsync, effect, timeoutMs } of tools) {
    const timeout = timeoutMs > 0 ? { timeout: timeoutMs } : {};
    await write("tools", name, { executionType: "external", visible: false, isAsync, effect, ...timeout });
  }
  await write("agents", agentName, { tools: { use: tools.map(({ name }) => name) } });
}
