// The whole suite against three NATS nodes, of which two are killed: most of what is stored can be neither read nor written.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { InputItemSchema, RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { until } from "#runtime/time/until.ts";
import { writeCountingAgent } from "../../../harness/agents/counting-agent.ts";
import { openCluster } from "../../../harness/cluster/cluster.ts";
import { openTestSuite, type TestSuite } from "../../../harness/suite.ts";

type Call = (signal: AbortSignal) => Promise<unknown>;

const input = create(InputItemSchema, {
  item: { case: "message", value: { role: Role.USER, content: textContent("go") } },
});

/** Of each service and of each kind: what is in memory, read, written, and streamed. */
function callsOf({ connection }: TestSuite, { runId, sessionId }: { runId: string; sessionId: string }) {
  const agents = connection.client(AgentService);
  const tools = connection.client(ToolService);
  const runs = connection.client(RunService);
  const sessions = connection.client(SessionService);
  const toolCalls = connection.client(ToolCallService);
  const spaces = connection.client(SpaceService);
  const servers = connection.client(McpServerService);
  const audit = connection.client(AuditService);
  let count = 0;
  const agent = () => ({ name: `other-${count++}`, model: { provider: "scripted", model: "counting.json" } });
  const server = () => ({ name: `none-${count++}`, transport: { case: "stdio" as const, value: { command: "true" } } });
  const known: Record<string, Call> = {
    listAgents: (signal) => agents.listAgents({}, { signal }),
    getAgent: (signal) => agents.getAgent({ name: "counting" }, { signal }),
    watchAgents: (signal) => firstOf(agents.watchAgents({}, { signal })),
    listServers: (signal) => servers.listMcpServers({}, { signal }),
    listConnections: (signal) => servers.listConnections({}, { signal }),
  };
  const written: Record<string, Call> = {
    applyAgent: (signal) => agents.applyAgent({ agent: agent() }, { signal }),
    createRun: (signal) => runs.createRun({ agent: "counting", input: [input] }, { signal }),
    createSession: (signal) => sessions.createSession({ agent: "counting" }, { signal }),
    createSpace: (signal) => spaces.createSpace({}, { signal }),
    applyServer: (signal) => servers.applyMcpServer({ server: server() }, { signal }),
  };
  /** The node that is left goes on answering for what it led, until it has noticed. */
  const read: Record<string, Call> = {
    listTools: (signal) => tools.listTools({ scope: { case: "agent", value: "counting" } }, { signal }),
    callTool: (signal) => firstOf(tools.callTool({ sessionId, name: "note", argumentsJson: "{}" }, { signal })),
    getRun: (signal) => runs.getRun({ runId }, { signal }),
    listRuns: (signal) => runs.listRuns({}, { signal }),
    watchRun: (signal) => firstOf(runs.watchRun({ runId }, { signal })),
    getSession: (signal) => sessions.getSession({ sessionId }, { signal }),
    listSessions: (signal) => sessions.listSessions({}, { signal }),
    listToolCalls: (signal) => toolCalls.listToolCalls({}, { signal }),
    listSpaces: (signal) => spaces.listSpaces({}, { signal }),
    listAuditEvents: (signal) => audit.listAuditEvents({}, { signal }),
  };
  return { known, written, read, all: { ...known, ...written, ...read } };
}

async function firstOf(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream) return;
}

/** How each call ended, and that it did in time. */
async function outcomesOf(calls: Record<string, Call>): Promise<Record<string, ConnectError | "ok" | "late">> {
  const ended = Object.entries(calls).map(async ([name, call]) => {
    const late = AbortSignal.timeout(10_000);
    const onError = (error: unknown) => (late.aborted ? "late" : ConnectError.from(error));
    return [name, await call(late).then(() => "ok" as const, onError)] as const;
  });
  return Object.fromEntries(await Promise.all(ended));
}

const allAre = (calls: Record<string, Call>, outcome: unknown) =>
  Object.fromEntries(Object.keys(calls).map((name) => [name, outcome]));

it("BUS-6 with two of three nodes away every call ends within 10 s and says why, and so do health and the logs", async () => {
  await using stack = new AsyncDisposableStack();
  const cluster = stack.use(await openCluster());
  const directories = await writeCountingAgent(stack, []);
  const services = ["gateway", "orchestrator", "tool-router", "caller-relay", "spaces", "mcp-bridge"] as const;
  const env = { ...directories, TOOLBUS_REPLICAS: "3", TOOLBUS_BUS_CREDENTIALS: cluster.credentials };
  const suite = stack.use(await openTestSuite({ natsUrl: cluster.url, services: [...services], env }));
  const { run } = await suite.connection.client(RunService).createRun({ agent: "counting", input: [input] });
  const { known, written, read, all } = callsOf(suite, { runId: run?.id ?? "", sessionId: run?.sessionId ?? "" });
  const health = async () => {
    const response = await fetch(`${suite.url}/healthz`);
    return [response.status, await response.text()];
  };
  const lines = async (text: string) => {
    const logs = services.map((service) => readFile(join(suite.directory, "logs", `${service}.log`), "utf8"));
    return (await Promise.all(logs)).map((log) => log.split(text).length - 1);
  };
  expect(await outcomesOf(all)).toEqual(allAre(all, "ok"));
  expect(await health()).toEqual([200, "ok\n"]);

  const away = cluster.nodes.slice(0, 2);
  await Promise.all(away.map((node) => node.kill()));
  const refused = expect.objectContaining({ code: Code.Unavailable, message: expect.stringContaining("quorum") });
  const isAnswered = (outcome: unknown) => outcome === "ok" || refused.asymmetricMatch(outcome);
  const atOnce = await outcomesOf(all);
  expect(atOnce).toEqual(allAre(all, expect.not.stringContaining("late")));
  await until(async () => (await health())[0] === 503, { timeoutMs: 20_000 });
  expect((await health())[1]).toContain("quorum");
  expect(await outcomesOf(known)).toEqual(allAre(known, "ok"));
  expect(await outcomesOf(written)).toEqual(allAre(written, refused));
  expect(await outcomesOf(read)).toEqual(allAre(read, expect.toSatisfy(isAnswered)));
  expect(await lines("nothing can be stored")).toEqual(services.map(() => 1));

  await Promise.all(away.map((node) => node.restart()));
  await until(async () => (await health())[0] === 200, { timeoutMs: 40_000 });
  // nats-server may leave a single store without a leader for minutes after such a fault: calls of it are refused, others go on
  const works = async () => Object.values(await outcomesOf(all)).filter((outcome) => outcome === "ok").length;
  await until(async () => (await works()) > Object.keys(known).length, { timeoutMs: 40_000 });
  await until(async () => (await lines("stores again")).every((count) => count === 1), { timeoutMs: 20_000 });
}, 300_000);
