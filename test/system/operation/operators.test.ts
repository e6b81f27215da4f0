// What all sessions use, at a gateway with keys: the catalogue and the MCP servers run commands and read secrets behind it.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { ProviderService } from "#gen/toolbus/provider/v1/provider_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolCatalogService } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { Builtin, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { until } from "#runtime/time/until.ts";
import { openConnection } from "../../../cli/connection.ts";
import { fixturesIn } from "../../harness/agents/fixtures.ts";
import { openTestSuite } from "../../harness/suite.ts";

const keys = { olga: "key-of-the-operator", mallory: "mallorys-key-01234" };

const stack = new AsyncDisposableStack();
let olga: Clients;
let mallory: Clients;

beforeAll(async () => {
  const suite = stack.use(
    await openTestSuite({
      services: ["gateway", "tool-router", "mcp-bridge"],
      env: {
        ...fixturesIn("keys"),
        TOOLBUS_API_KEYS: `olga:${keys.olga},mallory:${keys.mallory}`,
        TOOLBUS_OPERATORS: "olga",
      },
    }),
  );
  olga = clientsWith(suite.url, keys.olga);
  mallory = clientsWith(suite.url, keys.mallory);
  const areThere = () =>
    Promise.all([olga.agents.listAgents({}), olga.servers.listMcpServers({})]).catch(() => undefined);
  await until(areThere, { timeoutMs: 60_000 });
});
afterAll(() => stack.disposeAsync());

function clientsWith(url: string, apiKey: string) {
  const { client } = openConnection({ url, apiKey });
  return {
    agents: client(AgentService),
    catalogue: client(ToolCatalogService),
    providers: client(ProviderService),
    servers: client(McpServerService),
    sessions: client(SessionService),
  };
}

type Clients = ReturnType<typeof clientsWith>;

const shell = {
  name: "shell",
  executionType: ExecutionType.BUILTIN,
  builtinPolicy: { builtin: Builtin.SHELL_EXEC, allowedCommands: ["sh"], allowedPaths: ["/"] },
};
const sly = { name: "sly", sources: [{ name: "sh", provider: "mcp", config: { command: "sh" } }] };

/** In an order in which an operator can do all of it. */
const changes: Record<string, (by: Clients) => Promise<unknown>> = {
  "ToolCatalogService.ApplyCatalogTool": ({ catalogue }) => catalogue.applyCatalogTool({ tool: shell }),
  "ProviderService.ApplyProvider": ({ providers }) =>
    providers.applyProvider({ provider: { name: "inside", address: { case: "url", value: "http://127.0.0.1:9" } } }),
  "AgentService.ApplyAgent": ({ agents }) => agents.applyAgent({ agent: sly }),
  "McpServerService.ApplyMcpServer": ({ servers }) =>
    servers.applyMcpServer({ server: { name: "sly", transport: { case: "stdio", value: { command: "sh" } } } }),
  "McpServerService.DeleteMcpServer": ({ servers }) => servers.deleteMcpServer({ name: "sly" }),
  "AgentService.DeleteAgent": ({ agents }) => agents.deleteAgent({ name: "sly" }),
  "ProviderService.DeleteProvider": ({ providers }) => providers.deleteProvider({ name: "inside" }),
  "ToolCatalogService.DeleteCatalogTool": ({ catalogue }) => catalogue.deleteCatalogTool({ name: "shell" }),
};

describe("what all sessions use, through the gateway", () => {
  test.each(Object.entries(changes))("ORCH-2 %s is refused to a key that is no operator's", async (_, change) => {
    const failure = await change(mallory).then(() => undefined, failureFromConnectError);
    expect(failure).toMatchObject({ code: "permission_denied", reason: "PRINCIPAL_NOT_OPERATOR" });
    expect(failure?.message).toMatch(/is for operators: ask an operator, or make "mallory" one: by TOOLBUS_OPERATORS/);
  });

  test.each(Object.entries(changes))("ORCH-2 %s is open to an operator", async (_, change) => {
    await change(olga);
  });

  test("SEC-2 of several keys, an agent without grants is for an operator's alone, until one names others", async () => {
    const failure = await mallory.sessions
      .createSession({ agent: "keeper" })
      .then(() => undefined, failureFromConnectError);
    expect(failure).toMatchObject({ code: "permission_denied", reason: "PRINCIPAL_NOT_GRANTED" });
    expect(failure?.message).toMatch(
      /TOOLBUS_DEFAULT_GRANT of the gateway names: ask an operator to name "mallory" there/,
    );
    await olga.sessions.createSession({ agent: "keeper" });
  });

  test("ORCH-5 every key may ask what would be wrong with an agent", async () => {
    const { agent } = await mallory.agents.applyAgent({ agent: { name: "tried" }, validateOnly: true });
    expect(agent?.agent?.name).toBe("tried");
    expect((await mallory.agents.listAgents({})).agents.map((one) => one.agent?.name)).not.toContain("tried");
  });
});
