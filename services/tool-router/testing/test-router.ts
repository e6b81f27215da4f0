import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import type { RunBoundsSchema } from "#gen/toolbus/internal/run/v1/run_context_pb.ts";
import { ProviderService } from "#gen/toolbus/provider/v1/provider_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolCatalogService } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import {
  type CallToolRequestSchema,
  type CallToolResponse,
  ToolService,
} from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { createLogger } from "#runtime/lifecycle/logger.ts";
import { serveOnBus } from "#runtime/rpc/bus/server.ts";
import { encodeRunContext } from "#runtime/rpc/run-context.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { clientFor } from "../../clients.ts";
import { readConfig } from "../config.ts";
import { openService } from "../service.ts";
import { FakeProvider } from "./fakes/fake-provider.ts";
import { FakeSpaces } from "./fakes/fake-spaces.ts";
import { openRouterProcess } from "./router-process.ts";

const logger = createLogger({ name: "tool-router", level: "silent" });

/** A call, and what its run says of it. */
type TestCall = MessageInitShape<typeof CallToolRequestSchema> & {
  bounds?: MessageInitShape<typeof RunBoundsSchema>;
  recovering?: boolean;
};

export type TestRouter = Awaited<ReturnType<typeof openTestRouter>>;

/** Two routers on a real server with faithful fakes around them, and clients of everything that they serve. */
export async function openTestRouter(env: Record<string, string> = {}) {
  await using stack = new AsyncDisposableStack();
  const bus = stack.use(await openTestBus());
  const directory = await mkdtemp(join(tmpdir(), "toolbus-test-router-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const [agentsDirectory, toolsDirectory] = [join(directory, "agents"), join(directory, "tools")];
  const spaces = new FakeSpaces();
  const mcp = new FakeProvider();
  const caller = new FakeProvider();
  const pool = new FakeProvider();
  const { url, credentials } = bus.server;
  const bind = { NATS_URL: url, TOOLBUS_BUS_CREDENTIALS: credentials };
  const variables = { TOOLBUS_AGENTS: agentsDirectory, TOOLBUS_TOOLS: toolsDirectory, ...bind, ...env };
  stack.use(await serve(bus, "spaces", spaces.spaceRoutes));
  stack.use(await serve(bus, "caller-relay", caller.routes));
  const startMcp = () => serve(bus, "mcp-bridge", mcp.routes);
  const startPool = () => serve(bus, "worker-pool", pool.routes);
  const startRouter = async (instance: string, own?: string) => {
    const name = own === undefined ? "tool-router" : `tool-router.${own}`;
    const telemetry = await openTelemetry({ service: name });
    const context = { name, instance, logger, telemetry, signal: new AbortController().signal };
    return openService(readConfig({ ...variables, TOOLBUS_INSTANCE: instance }), context);
  };
  const owned = stack.move();
  return {
    bus,
    spaces,
    mcp,
    caller,
    pool,
    agentsDirectory,
    toolsDirectory,
    startMcp,
    startPool,
    /** Under a name of its own, a router is reached by `clientsOf(name)`, and by nobody else. */
    startRouter,
    /** A router as a process, which can be killed. */
    startRouterProcess: (name: string) => openRouterProcess({ ...variables, TOOLBUS_INSTANCE: name }, name),
    clientsOf: (room: string) => clientsOn(bus, `tool-router.${room}`),
    clients: clientsOn(bus),
    use: <T extends AsyncDisposable>(part: T): T => owned.use(part),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function serve(bus: TestBus, service: string, routes: (router: ConnectRouter) => void) {
  return serveOnBus(bus, { service, routes, drainTimeoutMs: 1, logger });
}

function clientsOn(bus: TestBus, room = "tool-router") {
  const router = clientFor(bus, ToolService, { process: room });
  return {
    router,
    agents: clientFor(bus, AgentService, { process: room }),
    catalogue: clientFor(bus, ToolCatalogService, { process: room }),
    providers: clientFor(bus, ProviderService, { process: room }),
    sessions: clientFor(bus, SessionService, { process: room }),
    calls: clientFor(bus, ToolCallService, { process: room }),
    audit: clientFor(bus, AuditService, { process: room }),
    /** A whole call: its events, and its result as a value. */
    async call({ bounds, recovering = false, ...request }: TestCall, signal?: AbortSignal) {
      const events: CallToolResponse["event"][] = [];
      const context = { recovering, ...(bounds && { bounds }) };
      const told = { runContext: encodeRunContext(context), ...request };
      for await (const { event } of router.callTool(told, signal ? { signal } : {})) events.push(event);
      const last = events.at(-1);
      if (last?.case !== "result") throw new Error("the call ended without a result");
      const output: unknown = JSON.parse(last.value.outputJson);
      return { events, output, isError: last.value.isError, execution: last.value.execution };
    },
  };
}
