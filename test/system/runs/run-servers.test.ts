// MCP servers that one run brings along, through the whole suite: they are that run's alone.

import { fileURLToPath } from "node:url";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { type CreateRunRequestSchema, InputItemSchema, RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { until as untilWithin } from "#runtime/time/until.ts";
import { openSessionServer, type SessionServer } from "../../../services/mcp-bridge/testing/servers/session-server.ts";
import { runCommand } from "../../harness/commands/command.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const scripts = fileURLToPath(new URL("../fixtures/run-servers", import.meta.url));

const stack = new AsyncDisposableStack();
let suite: TestSuite;
let one: SessionServer;
let other: SessionServer;
beforeAll(async () => {
  one = stack.use(await openSessionServer());
  other = stack.use(await openSessionServer());
  const allowed = [one, other].map(({ port }) => `127.0.0.1:${port}`).join(",");
  const env = { TOOLBUS_SCRIPTS: scripts, TOOLBUS_MCP_STARTUP_TIMEOUT: "30s", TOOLBUS_MCP_RUN_ALLOW: allowed };
  suite = stack.use(await openTestSuite({ isolate: true, env }));
  const agents = [
    { name: "asker" },
    { name: "parker" },
    { name: "strict", model: "asker", tools: { use: ["@files/*"], allowed: { names: ["@files/*"] } } },
  ];
  for (const { name, model = name, tools } of agents) {
    const language = { provider: "scripted", model: `${model}.json` };
    const sources = [{ name: "own", provider: "mcp", config: { command: "false" } }];
    await clientOf(AgentService).applyAgent({ agent: { name, model: language, sources, ...(tools && { tools }) } });
  }
});
afterAll(() => stack.disposeAsync());

const until: typeof untilWithin = (condition, options) => untilWithin(condition, { timeoutMs: 30_000, ...options });
const clientOf: TestSuite["connection"]["client"] = (service) => suite.connection.client(service);

async function openSession(agent: string): Promise<string> {
  return (await clientOf(SessionService).createSession({ agent })).session?.id ?? "";
}

type Options = NonNullable<MessageInitShape<typeof CreateRunRequestSchema>["options"]>;

async function start(sessionId: string, text: string, options: Options): Promise<string> {
  const input = [
    create(InputItemSchema, { item: { case: "message", value: { role: Role.USER, content: textContent(text) } } }),
  ];
  return (await clientOf(RunService).createRun({ sessionId, input, options })).run?.id ?? "";
}

async function reaches(runId: string, state: RunState) {
  return until(async () => {
    const { run } = await clientOf(RunService).getRun({ runId });
    if (run?.state === RunState.FAILED) throw new Error(run.error);
    return run?.state === state && run;
  });
}

const crm = ({ url }: SessionServer) => ({
  mcpServers: [{ name: "crm", transport: { case: "http" as const, value: { url } } }],
});
type Address = { url?: string; headers?: Record<string, string> };
const over = (value: Address) => ({ name: "crm", transport: { case: "http" as const, value } });
const runConnections = async () =>
  (await clientOf(McpServerService).listConnections({})).connections.filter(({ runId }) => runId !== "");

describe("TOOL-14 an MCP server that a run brings", () => {
  it("is that run's alone, also beside one of the same name, and is gone at its end", async () => {
    const sessions = [await openSession("asker"), await openSession("asker")];
    const [first, second] = await Promise.all([
      start(sessions[0]!, "to one", { ...crm(one) }),
      start(sessions[1]!, "to other", { ...crm(other) }),
    ]);
    expect((await reaches(first, RunState.COMPLETED)).outputText).toContain("to one");
    expect((await reaches(second, RunState.COMPLETED)).outputText).toContain("to other");
    expect([one.sessions.executed, other.sessions.executed]).toEqual([1, 1]);
    await until(() => one.sessions.count + other.sessions.count === 0);
    expect(await runConnections()).toEqual([]);
    const { tools } = await clientOf(ToolService).listTools({
      scope: { case: "session", value: { sessionId: sessions[0]! } },
    });
    expect(tools.map(({ reference }) => reference)).not.toContain("@crm/echo");
    const without = await reaches(await start(sessions[0]!, "again", {}), RunState.COMPLETED);
    expect(without.outputText).toContain("crm__echo");
    expect(one.sessions.executed).toBe(1);
  });

  it("LOOP-13 is there again after the orchestrator was killed, and gone when the run has ended", async () => {
    const executed = one.sessions.executed;
    const sessionId = await openSession("parker");
    const runId = await start(sessionId, "go", { ...crm(one), functionTools: [{ name: "ask_client" }] });
    const { requiredCalls } = await reaches(runId, RunState.REQUIRES_ACTION);
    expect((await runConnections()).map((connection) => [connection.server, connection.runId])).toEqual([
      ["crm", runId],
    ]);
    const asked = (run: object) => ({
      scope: { case: "session" as const, value: { sessionId, runId, ...run } },
      name: "@crm/echo",
    });
    const runSources = [{ name: "crm", provider: "mcp", config: { url: one.url } }];
    const { explainTool } = clientOf(ToolService);
    expect(await explainTool(asked({ runSources }))).toMatchObject({ reference: "@crm/echo", callable: true });
    expect(await explainTool(asked({}))).toMatchObject({ reference: "", callable: false });
    const orchestrator = suite.services.find(({ service }) => service === "orchestrator");
    process.kill(orchestrator?.pid ?? 0, "SIGKILL");
    const callId = requiredCalls[0]?.callId ?? "";
    const outputs = [{ callId, submissionId: "s", outcome: { case: "resultJson" as const, value: "1" } }];
    await until(() =>
      clientOf(RunService)
        .submitOutputs({ runId, outputs })
        .then(
          () => true,
          () => false,
        ),
    );
    await reaches(runId, RunState.COMPLETED);
    expect(one.sessions.executed - executed).toBe(2);
    await until(() => one.sessions.count === 0);
    expect(await runConnections()).toEqual([]);
  });

  it("is narrowed by allowed_tools and by the agent's allowed", async () => {
    const narrowed = await start(await openSession("asker"), "x", {
      ...crm(one),
      allowedTools: { names: ["@crm/report"] },
    });
    expect((await reaches(narrowed, RunState.COMPLETED)).outputText).toContain("is not in the allowed_tools list");
    const strict = await start(await openSession("strict"), "x", crm(one));
    expect((await reaches(strict, RunState.COMPLETED)).outputText).toContain("not in tools.allowed");
  });

  it("is refused before the model is called where operators or the agent do not have it", async () => {
    const sessionId = await openSession("asker");
    const refusalOf = (mcpServers: Options["mcpServers"]) =>
      start(sessionId, "x", { ...(mcpServers && { mcpServers }) }).then(String, ({ message }: Error) => message);
    const { url } = one;
    expect(await refusalOf([{ name: "crm", transport: { case: "stdio", value: { command: "sh" } } }])).toContain(
      "runs may bring no commands here",
    );
    expect(await refusalOf([over({ url: "ws://localhost/" })])).toContain("only servers at http and https URLs");
    expect(await refusalOf([over({ url, headers: { a: ["$", "{secret:KEY}"].join("") } })])).toContain(
      "a secret of the suite",
    );
    const fieldsOf = (server: Address) =>
      start(sessionId, "x", { mcpServers: [over({ url, ...server })] }).then(
        () => [],
        (error: unknown) => failureFromConnectError(error).fieldViolations?.map(({ field }) => field),
      );
    const place = "options.mcp_servers[0]";
    expect(await fieldsOf({ url: ["http://localhost/$", "{secret:KEY}"].join("") })).toEqual([`${place}.http.url`]);
    expect(await fieldsOf({ headers: { "a b": "1" } })).toEqual([`${place}.http.headers["a b"]`]);
    expect(await fieldsOf({ headers: { a: "1\n2" } })).toEqual([`${place}.http.headers["a"]`]);
    expect(await fieldsOf({ headers: { Host: "x" } })).toEqual([`${place}.http.headers["Host"]`]);
    expect(await refusalOf([{ ...over({ url }), name: "own" }])).toContain(
      '"own" of the run is named like the source "own" of agent',
    );
    const twice = over({ url });
    expect(await refusalOf([twice, twice])).toContain('two MCP servers of the run are called "crm"');
  });

  it("TOOL-3 is not reached at an address inside that operators do not allow", async () => {
    const inside = await openSessionServer();
    await using _ = inside;
    const runId = await start(await openSession("asker"), "x", crm(inside));
    await reaches(runId, RunState.COMPLETED);
    expect(inside.sessions.headers).toEqual({});
  });

  it("SEC-3 what calls tools itself brings neither commands nor sources of other providers", async () => {
    const sessionId = await openSession("asker");
    const call = async (provider: string, config: object) => {
      const runSources = [{ name: "x", provider, config: config as Record<string, string> }];
      const request = { sessionId, runId: "run_x", name: "@x/echo", argumentsJson: "{}", runSources };
      const events = await Array.fromAsync(clientOf(ToolService).callTool(request)).catch(
        ({ message }: Error) => message,
      );
      return typeof events === "string" ? events : JSON.stringify(events.map(({ event }) => event.value));
    };
    expect(await call("worker", { path: "x.py" })).toContain("provider worker takes none of runs");
    expect(await call("mcp", { command: "sh" })).toContain("runs may bring no commands here");
    expect(await runConnections()).toEqual([]);
  });

  it("is named on the command line", async () => {
    const toolbus = (...args: string[]) => runCommand(["--url", suite.url, ...args]);
    const ran = await toolbus("run", "asker", "hello", "--mcp-server", `crm=${other.url}`);
    expect(ran).toMatchObject({ exitCode: 0 });
    expect(ran.stdout).toContain("hello");
    const header = ["--mcp-header", "crm=x-key: one:two"];
    expect(await toolbus("run", "asker", "again", "--mcp-server", `crm=${other.url}`, ...header)).toMatchObject({
      exitCode: 0,
    });
    expect(other.sessions.headers).toMatchObject({ "x-key": "one:two" });
    expect((await toolbus("run", "asker", "hello", "--mcp-server", "crm")).exitCode).toBe(2);
    expect((await toolbus("run", "asker", "hello", ...header)).exitCode).toBe(2);
  });
});
