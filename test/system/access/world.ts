import { create, type DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { ProviderService } from "#gen/toolbus/provider/v1/provider_service_pb.ts";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { InputItemSchema, RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolCatalogService } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { WorkerService } from "#gen/toolbus/worker/v1/worker_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { transportOnBus } from "#runtime/rpc/bus/client.ts";
import { until } from "#runtime/time/until.ts";
import { fixturesIn } from "../../harness/agents/fixtures.ts";
import { asCaller, asOperator, asPrincipal } from "../../harness/callers.ts";
import { openTestSuite, type TestSuiteOptions } from "../../harness/suite.ts";

export const keys = { alice: "alices-key-0123456", mallory: "mallorys-key-01234", olga: "key-of-the-operator" };

/** In every place of a configuration that only operators may read. */
export const SECRET = "only-for-operators";

export const sessionId = "alices";
export const input = [
  create(InputItemSchema, { item: { case: "message", value: { role: Role.USER, content: textContent("hello") } } }),
];
export const options = { functionTools: [{ name: "ask_client" }] };

export type World = Awaited<ReturnType<typeof openWorld>>;

/** A suite with keys in which everything that methods ask for belongs to alice, or was configured by olga. */
export async function openWorld(suiteOptions: TestSuiteOptions = {}) {
  await using stack = new AsyncDisposableStack();
  const principals = Object.entries(keys).map((pair) => pair.join(":"));
  const access = { TOOLBUS_API_KEYS: principals.join(), TOOLBUS_OPERATORS: "olga", TOOLBUS_DEFAULT_GRANT: "*" };
  const env = { ...fixturesIn("keys"), ...access, ...suiteOptions.env };
  const suite = stack.use(await openTestSuite({ ...suiteOptions, env }));
  const bus = await suite.openBus();
  const through = (apiKey?: string) => gatewayAt(suite.url, apiKey);
  const alice = through(keys.alice);
  const olga = through(keys.olga);
  await until(
    () =>
      alice
        .client(SessionService)
        .createSession({ agent: "keeper", sessionId })
        .catch(() => undefined),
    {
      timeoutMs: 60_000,
    },
  );
  await until(
    () =>
      olga
        .client(McpServerService)
        .listMcpServers({})
        .catch(() => undefined),
    { timeoutMs: 60_000 },
  );
  await until(
    () =>
      olga
        .client(WorkerService)
        .listWorkers({})
        .catch(() => undefined),
    { timeoutMs: 60_000 },
  );
  await configure(olga);
  const spaces = alice.client(SpaceService);
  await spaces.createSpace({ spaceId: "hall" });
  await spaces.enterSpace({ spaceId: "hall", member: { case: "agent", value: { sessionId } } });
  for (const name of ["weigh", "approve", "asked"]) {
    const tool = name === "asked" ? "approve" : name;
    const events = alice.client(ToolService).callTool({ sessionId, name: tool, callId: name });
    for await (const { event } of events) if (event.case === "result") break;
  }
  const runs = alice.client(RunService);
  const { run } = await runs.createRun({ sessionId, input, options, idempotencyKey: "first" });
  const isParked = async () => (await runs.getRun({ runId: run!.id })).run?.state === RunState.REQUIRES_ACTION;
  await until(isParked, { timeoutMs: 60_000, what: "the run to wait for its client" });

  const { key, keyId } = await alice.client(ToolCallService).createCallKey({ callId: "asked" });

  const transports = {
    "no key": through().transport,
    stranger: through(keys.mallory).transport,
    owner: alice.transport,
    "call key": through(key).transport,
    operator: olga.transport,
  };
  const owned = stack.move();
  return {
    suite,
    runId: run!.id,
    transports,
    /** Past the gateway. */
    onBus: (process: string): Transport => transportOnBus(bus, { process }),
    /** Who asks there, as the gateway says it; the service itself, where that says nothing. */
    callers: {
      stranger: asPrincipal("mallory"),
      owner: asPrincipal("alice"),
      "call key": asCaller({ principal: "alice", isOperator: false, callKey: { callId: "asked", id: keyId } }),
      operator: asOperator("olga"),
    } as Record<string, ReturnType<typeof asPrincipal>>,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

const connections = new Map<string, Http2SessionManager>();

/** One for each key at an address, however often it is asked for: nobody closes it. */
function connectionOf(baseUrl: string, apiKey = ""): Http2SessionManager {
  const place = `${baseUrl} ${apiKey}`;
  const connection = connections.get(place) ?? new Http2SessionManager(baseUrl);
  connections.set(place, connection);
  return connection;
}

export function gatewayAt(baseUrl: string, apiKey?: string, headers: Record<string, string> = {}) {
  const sent = { ...headers, ...(apiKey !== undefined && { "x-api-key": apiKey }) };
  const transport = createConnectTransport({
    ...{ baseUrl, httpVersion: "2", sessionManager: connectionOf(baseUrl, apiKey) },
    interceptors: [
      (next) => (request) => {
        for (const [name, value] of Object.entries(sent)) request.header.set(name, value);
        return next(request);
      },
    ],
  });
  return { transport, client: <S extends DescService>(service: S): Client<S> => createClient(service, transport) };
}

async function configure({ client }: ReturnType<typeof gatewayAt>): Promise<void> {
  const inside = `https://127.0.0.1:9/${SECRET}?key=${SECRET}`;
  const headers = { authorization: SECRET };
  await client(McpServerService).applyMcpServer({
    server: {
      name: "files",
      transport: { case: "stdio", value: { command: "true", args: [SECRET], env: { K: SECRET } } },
    },
  });
  await client(ToolCatalogService).applyCatalogTool({
    tool: {
      ...{ name: "fetch", executionType: ExecutionType.GATEWAY, config: { token: SECRET } },
      execution: { url: inside, headers },
    },
  });
  const address = { case: "url" as const, value: inside };
  await client(ProviderService).applyProvider({ provider: { name: "inside", address } });
  await client(AgentService).applyAgent({
    agent: {
      ...{ name: "sly", instructions: SECRET, description: "shown" },
      model: { provider: "scripted", model: "keeper.json", options: { user: SECRET } },
      sources: [{ name: "crm", provider: "mcp", config: { url: inside, headers } }],
    },
  });
}
