// The suite itself for MCP clients of either era: what an engineer asks who wants to know what went wrong.

import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { ToolCatalogService } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { type Connection, openConnection } from "../../../../cli/connection.ts";
import { openTestSuite, type TestSuite } from "../../../harness/suite.ts";
import { initializing, openNewClient, openOldClient, send } from "../fixtures/clients.ts";

const keys = { olga: "the-key-of-olga-herself", alice: "the-key-of-alice-herself", bob: "the-key-of-bob-himself" };
const scripts = fileURLToPath(new URL("../../fixtures/models", import.meta.url));

let suite: TestSuite;
const as = (name: keyof typeof keys): Connection => openConnection({ url: suite.url, apiKey: keys[name] });

beforeAll(async () => {
  suite = await openTestSuite({
    env: {
      TOOLBUS_SCRIPTS: scripts,
      TOOLBUS_API_KEYS: Object.entries(keys)
        .map(([name, key]) => `${name}:${key}`)
        .join(),
      TOOLBUS_OPERATORS: "olga",
      TOOLBUS_DEFAULT_GRANT: "alice,bob",
    },
  });
  const repeat = { name: "repeat", executionType: ExecutionType.INTERNAL };
  await as("olga").client(ToolCatalogService).applyCatalogTool({ tool: repeat });
  const model = { provider: "scripted", model: "plain.json" };
  const plain = { name: "plain", model, tools: { use: ["repeat"], allowed: { names: ["repeat"] } } };
  await as("olga").client(AgentService).applyAgent({ agent: plain });
  await as("olga")
    .client(AgentService)
    .applyAgent({ agent: { name: "waiting", model } });
}, 120_000);
afterAll(() => suite[Symbol.asyncDispose]());

const said = (text: string) => [
  { item: { case: "message" as const, value: { role: Role.USER, content: textContent(text) } } },
];

/** A run of alice's; one of `waiting` waits for its client's function. */
async function start(agent: "plain" | "waiting", text: string): Promise<string> {
  const options = agent === "waiting" ? { functionTools: [{ name: "repeat" }] } : {};
  const { run } = await as("alice")
    .client(RunService)
    .createRun({ agent, input: said(text), options });
  return run!.id;
}

/** What is looked at here of what the tools tell. */
interface Told {
  readonly ended?: boolean;
  readonly runs?: readonly { readonly id: string }[];
  readonly run?: { readonly id: string; readonly state: string };
  readonly steps?: readonly { readonly kind: string; readonly sequence: number; readonly calls?: readonly object[] }[];
  readonly events?: readonly object[];
  readonly serving?: Readonly<Record<string, boolean>>;
  readonly callable?: boolean;
  readonly code?: string;
  readonly reason?: string;
}

type Call = (name: string, given?: Record<string, unknown>) => Promise<{ told: Told; isError: boolean }>;

interface Assistant extends AsyncDisposable {
  readonly call: Call;
  readonly tools: readonly { name: string; description?: string | undefined; annotations?: object | undefined }[];
  readonly instructions: string;
}

const clients = {
  "SDK 1.x": openOldClient,
  "SDK 2.x": openNewClient,
};

async function openAssistant(line: keyof typeof clients, name: keyof typeof keys): Promise<Assistant> {
  const opened = await clients[line]({ url: suite.url, key: keys[name], path: "/mcp/~suite" });
  const { client } = opened;
  const call: Call = async (tool, given = {}) => {
    const answer = await client.callTool({ name: tool, arguments: given });
    const [block] = answer.content as { text: string }[];
    return { told: JSON.parse(block!.text), isError: answer.isError === true };
  };
  const { tools } = await client.listTools();
  return {
    call,
    tools,
    instructions: client.getInstructions() ?? "",
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

describe.each(Object.keys(clients) as (keyof typeof clients)[])("DOOR-4 an assistant with the client of %s", (line) => {
  it("lists tools that are the contract's methods, in its words, and says which of them change something", async () => {
    await using assistant = await openAssistant(line, "olga");
    const names = assistant.tools.map(({ name }) => name);
    expect(names).toEqual([...names].sort());
    expect(names).toEqual(expect.arrayContaining(["list_runs", "replay_run", "explain_tool", "list_audit_events"]));
    for (const { name, description, annotations } of assistant.tools) {
      expect(name).toMatch(/^[a-z_]{1,64}$/);
      expect(description).toMatch(/\w{3,}/);
      const readOnlyHint = !["cancel_run", "fork_run"].includes(name);
      expect(annotations).toMatchObject({ readOnlyHint });
      if (!readOnlyHint) expect(annotations).toMatchObject({ destructiveHint: name === "cancel_run" });
    }
    expect(assistant.tools.find(({ name }) => name === "list_runs")).toMatchObject({
      description: "Lists runs, latest first.",
      inputSchema: { properties: { states: { items: { enum: expect.arrayContaining(["RUN_STATE_FAILED"]) } } } },
    });
    expect(assistant.instructions).toContain("list_runs");
  });

  it("finds a run, replays it, sees what was decided, and forks it", async () => {
    const runId = await start("plain", "say it");
    await using assistant = await openAssistant(line, "alice");
    const { told: watched } = await assistant.call("watch_run", { runId, fromSequence: 0, maxSeconds: 20 });
    expect(watched).toMatchObject({ ended: true, updates: expect.any(Array) });
    const { told: listed } = await assistant.call("list_runs", { states: ["RUN_STATE_COMPLETED"], pageSize: 1_000 });
    expect(listed.runs?.map(({ id }) => id)).toContain(runId);
    const { told: replay } = await assistant.call("replay_run", { runId });
    const turn = replay.steps?.find(({ kind }) => kind === "turn");
    expect(replay).toMatchObject({ runId, agent: "plain", given: ["say it"] });
    expect(turn?.calls).toMatchObject([{ name: "repeat", result: { isError: false } }]);
    expect(replay.steps?.at(-1)).toMatchObject({ kind: "end", status: "completed" });
    const { told: decided } = await assistant.call("list_audit_events", { filter: { runId } });
    expect(decided.events).toContainEqual(expect.objectContaining({ kind: "AUDIT_KIND_PERMITTED", runId }));
    const { told: forked } = await assistant.call("fork_run", { runId, atSequence: turn?.sequence });
    expect(forked.run).toMatchObject({ fork: { runId, atSequence: turn?.sequence } });
  }, 60_000);

  it("waits for a run no longer than it says, and cancels it", async () => {
    const runId = await start("waiting", "wait");
    await using assistant = await openAssistant(line, "alice");
    const { told: first } = await assistant.call("watch_run", { runId, fromSequence: 0, maxUpdates: 1 });
    expect(first).toMatchObject({ ended: false, updates: [expect.anything()] });
    const begunAt = performance.now();
    const { told: some } = await assistant.call("watch_run", { runId, fromSequence: 0, maxSeconds: 1 });
    expect(some.ended).toBe(false);
    expect(performance.now() - begunAt).toBeLessThan(10_000);
    const { told: canceled } = await assistant.call("cancel_run", { runId, reason: "looked at" });
    expect(canceled.run?.id).toBe(runId);
    const { told: rest } = await assistant.call("watch_run", { runId, fromSequence: 0, maxSeconds: 20 });
    expect(rest.ended).toBe(true);
  }, 60_000);

  it("is told why an agent cannot call a tool, and how services and servers are", async () => {
    await using assistant = await openAssistant(line, "olga");
    const { told: explained } = await assistant.call("explain_tool", { agent: "waiting", name: "repeat" });
    expect(explained).toMatchObject({ steps: expect.any(Array) });
    expect(explained.callable ?? false).toBe(false);
    const { told: health } = await assistant.call("check_health");
    expect(health.serving).toMatchObject({ gateway: true, "toolbus.run.v1.RunService": true });
    expect((await assistant.call("list_connections")).isError).toBe(false);
  });

  it("sees and does what it may by RPC, and no more", async () => {
    const runId = await start("waiting", "mine");
    await using mine = await openAssistant(line, "alice");
    await using others = await openAssistant(line, "bob");
    await using operators = await openAssistant(line, "olga");
    const idsOf = async ({ call }: Assistant) =>
      (await call("list_runs", { pageSize: 1_000 })).told.runs?.map(({ id }) => id) ?? [];
    expect(await idsOf(mine)).toContain(runId);
    expect(await idsOf(others)).toEqual([]);
    const byRpc = await as("bob")
      .client(RunService)
      .cancelRun({ runId })
      .catch((error: unknown) => failureFromConnectError(error));
    for (const tool of ["get_run", "replay_run", "cancel_run", "watch_run"]) {
      const refused = await others.call(tool, { runId });
      expect(refused).toMatchObject({
        isError: true,
        told: { code: "permission_denied", reason: "PRINCIPAL_NOT_OWNER" },
      });
      expect(byRpc).toMatchObject({ code: refused.told.code, reason: refused.told.reason });
    }
    // an operator sees what was decided, and no words of others
    expect((await operators.call("replay_run", { runId })).told.reason).toBe("PRINCIPAL_NOT_OWNER");
    const filter = { agent: "plain" };
    expect((await operators.call("list_audit_events", { filter })).told.events?.length).toBeGreaterThan(0);
    expect((await others.call("list_audit_events", { filter })).told.events ?? []).toEqual([]);
    expect((await mine.call("get_run", { runId })).told.run?.state).not.toBe("RUN_STATE_CANCELED");
    expect((await mine.call("cancel_run", { runId })).isError).toBe(false);
  });

  it("is told what it asked wrongly, by the contract's own words", async () => {
    await using assistant = await openAssistant(line, "olga");
    const wrong = await assistant.call("get_run", { runId: "no such id!" });
    expect(wrong).toMatchObject({
      isError: true,
      told: { code: "invalid_argument", fieldViolations: [{ field: "run_id" }] },
    });
    const unknown = await assistant.call("get_run", { run: "x" });
    expect(unknown).toMatchObject({ isError: true, told: { error: expect.stringContaining("run") } });
    expect(await assistant.call("watch_run", { runId: "x", maxSeconds: 999 })).toMatchObject({ isError: true });
  });
});

it("DOOR-4 no agent takes the place of the suite", async () => {
  const apply = as("olga")
    .client(AgentService)
    .applyAgent({ agent: { name: "~suite" } });
  await expect(apply).rejects.toThrow(/name/);
});

it.each([
  ["no key", {}],
  ["a blank key", { authorization: "Bearer " }],
  ["a wrong key", { authorization: "Bearer wrong" }],
])("DOOR-4 nobody is let in with %s", async (_, headers) => {
  const where = { url: suite.url, key: "", path: "/mcp/~suite" };
  for (const message of [initializing, { jsonrpc: "2.0", id: 1, method: "tools/list" }]) {
    const response = await send(where, message, headers);
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toMatch(/^Bearer/);
    expect(await response.text()).not.toContain("list_runs");
  }
});

it.each(Object.keys(clients) as (keyof typeof clients)[])(
  "DOOR-4 the client of %s is refused a wrong key",
  async (line) => {
    await expect(clients[line]({ url: suite.url, key: "wrong", path: "/mcp/~suite" })).rejects.toThrow();
  },
);
