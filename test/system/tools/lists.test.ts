// Every list of the contract, through the gateway, in the smallest pages that there are.

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { McpContentService } from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { ProviderService } from "#gen/toolbus/provider/v1/provider_service_pb.ts";
import { Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { InboxService } from "#gen/toolbus/space/v1/inbox_service_pb.ts";
import { MemoryKind } from "#gen/toolbus/space/v1/memory_pb.ts";
import { MemoryService } from "#gen/toolbus/space/v1/memory_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolCatalogService } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { WorkerService } from "#gen/toolbus/worker/v1/worker_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { type PageRequest, placeOfNumber } from "#runtime/rpc/paging/page.ts";
import { until } from "#runtime/time/until.ts";
import { publicServices } from "../../../services/processes.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const patient = { timeoutMs: 45_000, intervalMs: 50 };
const server = fileURLToPath(new URL("../../faults/switch/testing/whose-server.ts", import.meta.url));
const contentServer = fileURLToPath(
  new URL("../../../services/mcp-bridge/testing/servers/content-server.ts", import.meta.url),
);
const content = { source: { sessionId: "listed", source: "content" } };
const owner = { sessionId: "listed", agent: "one" };
const stack = new AsyncDisposableStack();
const runIds: string[] = [];
let suite: TestSuite;
const clientOf: TestSuite["connection"]["client"] = (service) => suite.connection.client(service);

/** Three of everything, as far as the suite does not bring them. */
beforeAll(async () => {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-lists-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const hosted = join(directory, "hosted");
  await mkdir(hosted);
  for (const name of ["c", "a", "b"]) {
    const module = `export default { initialize() {}, tools: [{ name: "answers_${name}", run: () => 1 }] };\n`;
    await writeFile(join(hosted, `${name}.ts`), module);
  }
  suite = stack.use(await openTestSuite({ env: { TOOLBUS_HOSTED: hosted, TOOLBUS_MCP_STARTUP_TIMEOUT: "30s" } }));
  const numbers = [3, 1, 2];
  for (const number of numbers) {
    const later = { name: `later${number}`, executionType: ExecutionType.EXTERNAL, isAsync: true };
    await clientOf(ToolCatalogService).applyCatalogTool({ tool: later });
    const value = { command: process.execPath, args: [server, `${number}`] };
    const applied = { name: `server${number}`, transport: { case: "stdio" as const, value } };
    await clientOf(McpServerService).applyMcpServer({ server: applied });
    await clientOf(SpaceService).createSpace({ spaceId: `space${number}` });
  }
  const applied = numbers.map((number) => ({ name: `server${number}`, provider: "mcp" }));
  const config = { command: process.execPath, args: [contentServer] };
  const sources = [...applied, { name: "content", provider: "mcp", config }];
  const agent = { name: "one", sources, tools: { use: ["*"] }, wakeOnInbox: false };
  for (const description of ["1", "2", "3"])
    await clientOf(AgentService).applyAgent({ agent: { ...agent, description } });
  for (const name of ["two", "three"]) await clientOf(AgentService).applyAgent({ agent: { name } });
  for (const sessionId of ["listed", "b", "a"])
    await clientOf(SessionService).createSession({ sessionId, agent: "one" });
  await clientOf(SpaceService).enterSpace({ spaceId: "space1", member: { case: "agent", value: owner } });
  const entries = ["z", "a", "m"].map((key) => ({ kind: MemoryKind.GOAL, key, text: key }));
  await clientOf(MemoryService).setEntries({ ...owner, entries });
  for (const text of ["x", "y", "z"]) {
    await clientOf(SpaceService).sendMessage({ spaceId: "space1", content: textContent(text) });
    for await (const _ of clientOf(ToolService).callTool({
      sessionId: "listed",
      name: "later1",
      callId: `call-${text}`,
    }));
    const item = { case: "message", value: { role: Role.USER, content: textContent(text) } } as const;
    const { run } = await clientOf(RunService).createRun({ sessionId: "listed", input: [{ item }] });
    runIds.push(run?.id ?? "");
  }
});
afterAll(() => stack.disposeAsync());

/** What an element is called, and where it stands in the stated order. */
type Row = readonly [id: string, place: string];
interface Listing {
  nextPageToken: string;
  rows: Row[];
}

const named = (name = ""): Row => [name, name];
const numbered = (number = 0n): Row => [`${number}`, placeOfNumber(number)];
/** The latest first. */
const backwards = (number = 0n): Row => [`${number}`, placeOfNumber(2n ** 63n - number)];

async function rows<P extends { nextPageToken: string }>(page: Promise<P>, of: (page: P) => Row[]): Promise<Listing> {
  const answered = await page;
  return { nextPageToken: answered.nextPageToken, rows: of(answered) };
}

const lists: Record<string, (page: PageRequest) => Promise<Listing>> = {
  "AgentService.ListAgents": (page) =>
    rows(clientOf(AgentService).listAgents(page), ({ agents }) => agents.map(({ agent }) => named(agent?.name))),
  "AuditService.ListAuditEvents": (page) =>
    rows(clientOf(AuditService).listAuditEvents({ ...page, filter: { agent: "one", sessionId: "" } }), ({ events }) =>
      events.map(({ sequence }) => backwards(sequence)),
    ),
  "ProviderService.ListProviders": (page) =>
    rows(clientOf(ProviderService).listProviders(page), ({ providers }) =>
      providers.map(({ provider }) => named(provider?.name)),
    ),
  "SessionService.ListSessions": (page) =>
    rows(clientOf(SessionService).listSessions(page), ({ sessions }) => sessions.map(({ id }) => named(id))),
  "ToolCallService.ListToolCalls": (page) =>
    rows(clientOf(ToolCallService).listToolCalls({ ...page, sessionId: "listed" }), ({ calls }) =>
      calls.map(({ callId }) => named(callId)),
    ),
  "ToolCatalogService.ListCatalogTools": (page) =>
    rows(clientOf(ToolCatalogService).listCatalogTools(page), ({ tools }) =>
      tools.map(({ tool }) => named(tool?.name)),
    ),
  "ToolService.ListTools": (page) =>
    rows(
      clientOf(ToolService).listTools({ ...page, scope: { case: "session", value: { sessionId: "listed" } } }),
      ({ tools }) => tools.map(({ modelName }) => named(modelName)),
    ),
  "RunService.ListRuns": (page) =>
    rows(clientOf(RunService).listRuns({ ...page, sessionId: "listed" }), ({ runs }) =>
      runs.map(({ id }) => [id, `${9 - runIds.indexOf(id)}`] as const),
    ),
  "McpContentService.ListResources": (page) =>
    rows(clientOf(McpContentService).listResources({ ...page, ...content }), ({ resources }) =>
      resources.map(({ uri }) => named(uri)),
    ),
  "McpContentService.ListResourceTemplates": (page) =>
    rows(clientOf(McpContentService).listResourceTemplates({ ...page, ...content }), ({ resourceTemplates }) =>
      resourceTemplates.map(({ uriTemplate }) => named(uriTemplate)),
    ),
  "McpContentService.ListPrompts": (page) =>
    rows(clientOf(McpContentService).listPrompts({ ...page, ...content }), ({ prompts }) =>
      prompts.map(({ name }) => named(name)),
    ),
  "McpServerService.ListMcpServers": (page) =>
    rows(clientOf(McpServerService).listMcpServers(page), ({ servers }) =>
      servers.map(({ server }) => named(server?.name)),
    ),
  "McpServerService.ListConnections": (page) =>
    rows(clientOf(McpServerService).listConnections({ ...page, sessionId: "listed" }), ({ connections }) =>
      connections.map(({ server }) => named(server)),
    ),
  "WorkerService.ListWorkers": (page) =>
    rows(clientOf(WorkerService).listWorkers(page), ({ workers }) => workers.map(({ source }) => named(source))),
  "InboxService.ListInboxEvents": (page) =>
    rows(clientOf(InboxService).listInboxEvents({ ...page, ...owner }), ({ events }) =>
      events.map(({ sequence }) => numbered(sequence)),
    ),
  "MemoryService.ListEntries": (page) =>
    rows(clientOf(MemoryService).listEntries({ ...page, ...owner }), ({ entries }) =>
      entries.map(({ key }) => named(key)),
    ),
  "SpaceService.ListSpaces": (page) =>
    rows(clientOf(SpaceService).listSpaces(page), ({ spaces }) => spaces.map(({ id }) => named(id))),
  "SpaceService.ListMessages": (page) =>
    rows(clientOf(SpaceService).listMessages({ ...page, spaceId: "space1" }), ({ messages }) =>
      messages.map(({ sequence }) => backwards(sequence)),
    ),
};

it("BUS-1 every list of the contract is among these", () => {
  const named = publicServices.flatMap(({ name, methods }) => methods.map((method) => `${name}.${method.name}`));
  expect(Object.keys(lists).sort()).toEqual(named.filter((name) => name.includes(".List")).sort());
});

it.each(Object.entries(lists))("BUS-1 %s tells everything once and in order, one by one", async (_, list) => {
  const whole = async () => (await list({ pageSize: 0, pageToken: "" })).rows;
  await until(async () => (await whole()).length >= 3, patient);
  const { rows, pages } = await until(async () => {
    const before = await whole();
    const read = await allPages((pageToken) => list({ pageSize: 1, pageToken }));
    return isDeepStrictEqual(await whole(), before) && { rows: before, pages: read }; // else one came meanwhile
  }, patient);
  for (const page of pages) expect(page.rows.length).toBeLessThanOrEqual(1);
  const told = pages.flatMap((page) => page.rows);
  expect(told).toEqual(rows);
  expect(new Set(told.map(([id]) => id)).size).toBe(told.length);
  const places = told.map(([, place]) => place);
  expect(places).toEqual(places.toSorted());
});

it.each(Object.entries(lists))("BUS-1 %s refuses tokens that it did not give out, by name", async (name, list) => {
  const [, other = list] = Object.entries(lists).find(([another]) => another !== name) ?? [];
  await until(async () => (await other({ pageSize: 1, pageToken: "" })).nextPageToken !== "", patient);
  const { nextPageToken: foreign } = await other({ pageSize: 1, pageToken: "" });
  for (const pageToken of ["x", "1", `${foreign}x`, foreign]) {
    const failure = await list({ pageSize: 1, pageToken }).catch(failureFromConnectError);
    expect(failure).toMatchObject({
      ...{ code: "invalid_argument", reason: "PAGE_TOKEN_INVALID" },
      message: expect.stringMatching(/^page_token: /),
    });
  }
});
