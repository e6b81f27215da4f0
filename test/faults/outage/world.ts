import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { freePort } from "../../../examples/free-port.ts";
import { openModelServer } from "../loop/peers/model-server.ts";
import { type FaultyService, openFaultyService } from "../processes/faulty-service.ts";
import { type Broker, openBroker } from "./broker/broker.ts";
import { type Link, openLink } from "./broker/link.ts";
import { agentName, writeCatalogue } from "./outside/catalogue.ts";
import { type Outside, openOutside } from "./outside/outside.ts";

/** An instance with a way to each node of the broker of its own. */
export interface Struck {
  readonly service: FaultyService;
  readonly links: readonly Link[];
}

/** A broker, a gateway, spaces, and two of each service that is struck: each a process of its own. */
export interface World extends AsyncDisposable {
  readonly broker: Broker;
  readonly struck: readonly Struck[];
  /** Those, and the ones that are not struck. */
  readonly services: readonly FaultyService[];
  readonly url: string;
  readonly tools: Client<typeof ToolService>;
  readonly sessionIds: readonly string[];
  /** How often each key was done. */
  readonly effects: ReadonlyMap<string, number>;
  readonly unaskedEnds: readonly string[];
}

const SESSIONS = 4;
const struckNames = ["tool-router", "worker-pool", "mcp-bridge", "orchestrator"];

export async function openWorld({ tree, nodes }: { tree: string; nodes: 1 | 3 }): Promise<World> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "toolbus-faults-outage-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const broker = stack.use(await openBroker(nodes));
  const outside = stack.use(await openOutside());
  const models = stack.use(await openModelServer(callOnceAndEnd));
  await writeCatalogue(directory, outside);
  const unaskedEnds: string[] = [];
  const port = await freePort();
  const common = { ...process.env, ...settingsOf({ directory, broker, outside }), TOOLBUS_HTTP_PORT: String(port) };
  const start = async (name: string, number: number): Promise<Struck> => {
    const links = await Promise.all(broker.ports.map(openLink));
    for (const link of links) stack.use(link);
    const instance = `${name}-${number}`;
    const env = {
      ...common,
      NATS_URL: links.map((link) => `nats://127.0.0.1:${link.port}`).join(","),
      TOOLBUS_INSTANCE: instance,
      OPENAI_BASE_URL: models.urlFor(instance),
    };
    const onUnaskedEnd = (how: string) => void unaskedEnds.push(how);
    return { service: stack.use(openFaultyService({ tree, service: name, instance, env, onUnaskedEnd })), links };
  };
  const steady = await Promise.all([start("gateway", 1), start("spaces", 1)]);
  const struck = await Promise.all(struckNames.flatMap((name) => [start(name, 1), start(name, 2)]));
  const services = [...steady, ...struck].map(({ service }) => service);
  await Promise.all(services.map((service) => service.ready()));
  const url = `http://127.0.0.1:${port}`;
  const transport = createConnectTransport({ baseUrl: url, httpVersion: "2" });
  const sessionIds = await openSessions(createClient(SessionService, transport));
  const owned = stack.move();
  return {
    broker,
    struck,
    services,
    url,
    tools: createClient(ToolService, transport),
    sessionIds,
    effects: outside.effects,
    unaskedEnds,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

interface Surroundings {
  readonly directory: string;
  readonly broker: Broker;
  readonly outside: Outside;
}

function settingsOf({ directory, broker, outside }: Surroundings): NodeJS.ProcessEnv {
  return {
    TOOLBUS_BUS_CREDENTIALS: broker.credentials,
    TOOLBUS_REPLICAS: String(broker.replicas),
    TOOLBUS_AGENTS: join(directory, "agents"),
    TOOLBUS_TOOLS: join(directory, "tools"),
    TOOLBUS_WORKERS: join(directory, "none"),
    TOOLBUS_HOSTED: join(directory, "hosted"),
    TOOLBUS_GATEWAY_ALLOW: outside.address,
    TOOLBUS_AUTH: "none",
    TOOLBUS_SHARE_REQUESTS: "1000000",
    TOOLBUS_LOG_LEVEL: "warn",
  };
}

/** The model of the sub-agent: it makes the call whose key stands in what it is asked, and is done. */
const callOnceAndEnd: Parameters<typeof openModelServer>[0] = (token) => ({
  token,
  script: { turns: [{ calls: [{ tool: "http_at_most_once" }] }, { calls: [] }] },
  onStage: async () => undefined,
  onPrompt: () => 1,
});

async function openSessions(sessions: Client<typeof SessionService>): Promise<string[]> {
  const open = async () => {
    const created = await until(
      () => sessions.createSession({ agent: agentName }).catch(() => undefined), // the agent's file is being read
      { timeoutMs: 60_000 },
    );
    return created.session?.id ?? "";
  };
  return Promise.all(Array.from({ length: SESSIONS }, open));
}
