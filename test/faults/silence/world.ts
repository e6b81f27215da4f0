import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createSocketServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { writeFiles } from "../../harness/agents/write-files.ts";
import { openTestServer } from "../../harness/bus.ts";
import { type FaultyService, openFaultyService } from "../processes/faulty-service.ts";
import { type Link, openLink } from "./link.ts";

/** An instance with a way to the broker of its own. */
export interface Struck {
  readonly service: FaultyService;
  readonly link: Link;
}

/** A broker, a gateway, spaces, and two of each service that is struck: each a process of its own. */
export interface World extends AsyncDisposable {
  readonly struck: readonly Struck[];
  readonly tools: Client<typeof ToolService>;
  readonly sessionId: string;
  /** How often each key was done. */
  readonly effects: ReadonlyMap<string, number>;
  readonly unaskedEnds: readonly string[];
}

const AGENT = "steady";

export async function openWorld(tree: string): Promise<World> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "toolbus-faults-silence-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const broker = stack.use(await openTestServer());
  const outside = stack.use(await openOutside());
  await writeFiles(directory, {
    [`agents/${AGENT}.json`]: { name: AGENT, tools: { use: ["@effects/*"] } },
    "hosted/effects.js": moduleTo(outside.url),
  });
  const unaskedEnds: string[] = [];
  const port = await freePort();
  const start = async (name: string, number: number): Promise<Struck> => {
    const link = stack.use(await openLink(Number(new URL(broker.url).port)));
    const instance = `${name}-${number}`;
    const env = {
      ...process.env,
      NATS_URL: `nats://127.0.0.1:${link.port}`,
      TOOLBUS_BUS_CREDENTIALS: broker.credentials,
      TOOLBUS_INSTANCE: instance,
      TOOLBUS_AGENTS: join(directory, "agents"),
      TOOLBUS_TOOLS: join(directory, "none"),
      TOOLBUS_WORKERS: join(directory, "none"),
      TOOLBUS_HOSTED: join(directory, "hosted"),
      TOOLBUS_HTTP_PORT: String(port),
      TOOLBUS_AUTH: "none",
      TOOLBUS_SHARE_REQUESTS: "1000000",
      TOOLBUS_LOG_LEVEL: "warn",
    };
    const onUnaskedEnd = (how: string) => void unaskedEnds.push(how);
    return { service: stack.use(openFaultyService({ tree, service: name, instance, env, onUnaskedEnd })), link };
  };
  const steady = await Promise.all([start("gateway", 1), start("spaces", 1)]);
  const names = ["tool-router", "worker-pool"];
  const struck = await Promise.all(names.flatMap((name) => [start(name, 1), start(name, 2)]));
  await Promise.all([...steady, ...struck].map(({ service }) => service.ready()));
  const transport = createConnectTransport({ baseUrl: `http://127.0.0.1:${port}`, httpVersion: "2" });
  const sessions = createClient(SessionService, transport);
  const created = await until(
    () => sessions.createSession({ agent: AGENT }).catch(() => undefined), // the agent's file is being read
    { timeoutMs: 60_000 },
  );
  const owned = stack.move();
  return {
    struck,
    tools: createClient(ToolService, transport),
    sessionId: created.session?.id ?? "",
    effects: outside.effects,
    unaskedEnds,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** What tools change, counted. */
async function openOutside() {
  const effects = new Map<string, number>();
  const server = createServer(async (request, response) => {
    const key = (request.url ?? "").slice(1);
    effects.set(key, (effects.get(key) ?? 0) + 1);
    response.end(JSON.stringify({ key }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    effects,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function moduleTo(url: string): string {
  return `const tool = (effect) => ({
  name: effect,
  effect,
  description: "",
  inputSchema: { type: "object", properties: { key: { type: "string" } }, required: ["key"] },
  run: async ({ key }) => (await fetch("${url}/" + key)).json(),
});
export default { tools: [tool("pure"), tool("at_most_once")] };
`;
}

async function freePort(): Promise<number> {
  const server = createSocketServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
