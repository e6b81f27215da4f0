import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Client } from "@connectrpc/connect";
import { pino } from "pino";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { ProviderService } from "#gen/toolbus/provider/v1/provider_service_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { type Bus, openBus } from "#runtime/bus/bus.ts";
import { readLogin } from "#runtime/bus/credentials/directory.ts";
import { ADMIN } from "#runtime/bus/credentials/login.ts";
import { serverInterceptors } from "#runtime/rpc/interceptors.ts";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { delay } from "#runtime/time/delay.ts";
import { openSuite, type Suite } from "../../../cli/suite/suite.ts";
import { clientFor } from "../../../services/clients.ts";
import { openProbes, type Probes } from "./alive.ts";

export interface WorldOptions {
  readonly agents: number;
  /** How many of the agents have an MCP server of their own; the others' tool is a provider's on the bus. */
  readonly mcpAgents: number;
}

export interface World extends AsyncDisposable {
  /** How often a service has ended without being asked to. */
  readonly endings: () => number;
  readonly suite: Suite;
  readonly bus: Bus;
  readonly probes: Probes;
  readonly agents: readonly string[];
  readonly sessions: Client<typeof SessionService>;
  readonly router: Client<typeof ToolService>;
  readonly bridge: Client<typeof McpServerService>;
}

const PROVIDER = "whose-provider";
const services = ["tool-router", "tool-router", "mcp-bridge", "spaces", "caller-relay", "orchestrator"];
const server = fileURLToPath(new URL("testing/whose-server.ts", import.meta.url));

/** No service may need more: what is left of each switch would end it long before the last one. */
const MAX_HEAP_MEGABYTES = 128;

/** Two routers and what they need, as processes, and agents whose one tool answers whose it is. */
export async function openWorld({ agents: count, mcpAgents }: WorldOptions): Promise<World> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "toolbus-faults-switch-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const none = join(directory, "none");
  await mkdir(none);
  const probes = await openProbes(join(directory, "alive"), MAX_HEAP_MEGABYTES);
  let endings = 0;
  const env = {
    ...probes.env,
    TOOLBUS_AGENTS: none,
    TOOLBUS_TOOLS: none,
    TOOLBUS_LOG_LEVEL: "warn",
    TOOLBUS_MCP_STARTUP_TIMEOUT: "30s",
  };
  const suite = stack.use(
    await openSuite({
      directory,
      port: 0,
      services,
      env,
      isolate: true,
      onEvent: (event) => {
        if (event.kind === "ended" && !event.asked) endings += 1;
      },
    }),
  );
  const bus = stack.use(
    await openBus({ url: suite.nats.url, login: await readLogin(suite.credentials, ADMIN), name: "faults" }),
  );
  stack.use(await serveWhose(bus));
  const agents = Array.from({ length: count }, (_, index) => `agent-${index + 1}`);
  const [providers, agentService] = [clientFor(bus, ProviderService), clientFor(bus, AgentService)];
  await providers.applyProvider({ provider: { name: PROVIDER, address: { case: "service", value: PROVIDER } } });
  for (const [index, name] of agents.entries()) {
    const mcp = { provider: "mcp", config: { command: process.execPath, args: [server, name] } };
    const source = {
      name: sourceOf(name),
      ...(index < mcpAgents ? mcp : { provider: PROVIDER, config: { agent: name } }),
    };
    const tools = { use: [`@${sourceOf(name)}/*`], aliases: { mine: referenceOf(name) } };
    await agentService.applyAgent({ agent: { name, sources: [source], tools } });
  }
  const owned = stack.move();
  return {
    suite,
    bus,
    probes,
    endings: () => endings,
    agents,
    sessions: clientFor(bus, SessionService),
    router: clientFor(bus, ToolService),
    bridge: clientFor(bus, McpServerService),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

const sourceOf = (agent: string) => `${agent}-files`;

export const referenceOf = (agent: string) => `@${sourceOf(agent)}/whose`;

/** A provider on the bus: each source belongs to the agent that its configuration names. */
function serveWhose(bus: Parameters<typeof serveOnNats>[0]): Promise<AsyncDisposable> {
  const logger = pino({ level: "silent" });
  const offer = (sources: { name: string }[]) => ({
    tools: sources.map(({ name }) => ({ source: name, tool: { name: "whose" } })),
    sources: sources.map(({ name }) => ({ source: name, available: true })),
  });
  return serveOnNats(bus, {
    service: PROVIDER,
    drainTimeoutMs: 1,
    interceptors: serverInterceptors({ logger, fromOutside: true }),
    routes: (connect) =>
      connect.service(ToolProviderService, {
        getProvidedTools: ({ sources }) => offer(sources),
        async *watchProvidedTools({ sources }, { signal }) {
          yield offer(sources);
          await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
        },
        async *executeTool({ scope, source, argumentsJson }, { signal }) {
          const { nonce, delayMs } = JSON.parse(argumentsJson) as { nonce: string; delayMs: number };
          await delay(delayMs, signal);
          const isOwn = source?.config?.agent === scope?.agent;
          const agent = isOwn ? scope?.agent : `${scope?.agent} in ${String(source?.config?.agent)}`;
          const outputJson = JSON.stringify({ agent, sessionId: scope?.sessionId, nonce });
          yield { event: { case: "result", value: { outputJson } } };
        },
      }),
  });
}
