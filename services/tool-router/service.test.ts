import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { ToolCallState } from "#gen/toolbus/router/v1/tool_calls_pb.ts";
import { ToolMessageStatus as Status } from "#gen/toolbus/space/v1/space_pb.ts";
import { Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { until } from "#runtime/time/until.ts";
import { ended } from "./testing/fake-provider.ts";
import { openTestRouter, type TestRouter } from "./testing/test-router.ts";

const schema = JSON.stringify({ type: "object", properties: { path: { type: "string" } }, required: ["path"] });
const readFile = {
  source: "files",
  tool: { name: "read_file", inputSchemaJson: schema, executionType: ExecutionType.MCP },
};
const removeFile = { source: "files", tool: { name: "remove_file", executionType: ExecutionType.MCP } };
const files = { name: "files", provider: "mcp", config: { command: "files" } };

describe("the tool router on the bus", () => {
  let suite: TestRouter;
  let mcpService: AsyncDisposable;
  let sessions = 0;

  beforeAll(async () => {
    suite = await openTestRouter();
    for (const instance of ["a", "b"]) suite.use(await suite.startRouter(instance));
    mcpService = suite.use(await suite.startMcp());
    suite.mcp.offer([readFile, removeFile], [{ source: "files", available: true }]);
    await suite.clients.catalogue.applyTool({
      tool: { name: "ask", executionType: ExecutionType.SPACE, timeoutMs: 5_000 },
    });
    await suite.clients.catalogue.applyTool({ tool: { name: "echo", executionType: ExecutionType.INTERNAL } });
    await suite.clients.agents.applyAgent({
      agent: {
        name: "reader",
        sources: [files],
        tools: {
          use: ["@files/*", "ask", "echo"],
          allowed: ["read", "ask", "echo"],
          aliases: { read: "@files/read_file" },
        },
      },
    });
  });
  afterAll(() => suite[Symbol.asyncDispose]());

  async function openSession(agent = "reader"): Promise<string> {
    const sessionId = `s${++sessions}`;
    await suite.clients.sessions.createSession({ agent, sessionId });
    return sessionId;
  }

  test("KIND-1 a call goes to the provider of its source, and its progress and result come back", async () => {
    const sessionId = await openSession();
    const { events, output } = await suite.clients.call({
      sessionId,
      name: "read",
      argumentsJson: '{"path":"a"}',
      callId: "c1",
    });
    expect(events.map((event) => event.case)).toEqual(["progress", "result"]);
    expect(output).toEqual({ path: "a" });
    const request = suite.mcp.calls.find(({ callId }) => callId === "c1");
    expect(request).toMatchObject({ tool: "read_file", source: { name: "files", config: { command: "files" } } });
    expect(request?.scope).toMatchObject({ sessionId, agent: "reader", principal: "local" });
  });

  test("ORCH-2 ORCH-4 the tools of a session have model names, aliases, and say which may be called", async () => {
    const sessionId = await openSession();
    const { tools, agent } = await suite.clients.router.listTools({ sessionId });
    expect(agent).toBe("reader");
    expect(tools.map(({ modelName, callable, aliases }) => [modelName, callable, aliases])).toEqual([
      ["ask", true, []],
      ["echo", true, []],
      ["files__read_file", true, ["read"]],
      ["files__remove_file", false, []],
    ]);
  });

  test("ORCH-2 a refused call names agent, tool and rule, is an audit event, and reaches no provider", async () => {
    const sessionId = await openSession();
    const { output, isError } = await suite.clients.call({ sessionId, name: "files__remove_file", callId: "refused" });
    expect(isError).toBe(true);
    expect(output).toEqual({
      error: 'Agent "reader" may not call tool "@files/remove_file": it is not in tools.allowed.',
    });
    expect(suite.mcp.calls.map(({ callId }) => callId)).not.toContain("refused");
    const event = await until(async () => {
      const { events } = await suite.clients.audit.listAuditEvents({
        filter: { sessionId, kinds: [AuditKind.BLOCKED] },
      });
      return events[0];
    });
    expect(event).toMatchObject({
      agent: "reader",
      tool: "@files/remove_file",
      rule: "not in tools.allowed",
      callId: "refused",
    });
  });

  test("LOOP-3 a call outside of the run's allowed_tools is refused in these words", async () => {
    const sessionId = await openSession();
    const request = { sessionId, name: "files__read_file", argumentsJson: '{"path":"a"}' };
    const refused = await suite.clients.call({ ...request, allowedTools: ["echo"] });
    expect(refused.output).toEqual({ error: 'tool "files__read_file" is not in the allowed_tools list' });
    expect((await suite.clients.call({ ...request, allowedTools: ["read"] })).isError).toBe(false);
  });

  test("arguments that do not fit are told with their path", async () => {
    const { output } = await suite.clients.call({
      sessionId: await openSession(),
      name: "read",
      argumentsJson: '{"path":7}',
    });
    expect(output).toEqual({ error: 'Tool "@files/read_file" refuses its arguments: arguments.path: must be string' });
  });

  test("TOOL-2 an internal tool answers with its arguments", async () => {
    const { output } = await suite.clients.call({
      sessionId: await openSession(),
      name: "echo",
      argumentsJson: '{"a":1}',
    });
    expect(output).toEqual({ success: true, args: { a: 1 } });
  });

  test("TOOL-11 a visible tool outside a space runs nothing and says so", async () => {
    const { output } = await suite.clients.call({ sessionId: await openSession(), name: "ask" });
    expect(output).toEqual({ error: 'Tool "ask" is visible but you are not in a space. Call enter_space first.' });
  });

  test("TOOL-4 TOOL-7 TOOL-8 a person's answer ends the call at once, one submission wins, and the message follows", async () => {
    const sessionId = await openSession();
    suite.spaces.activeSpaces.set(sessionId, "room");
    const calling = suite.clients.call({
      sessionId,
      name: "ask",
      argumentsJson: '{"q":1}',
      callId: "asked",
      runId: "r1",
    });
    await until(() => suite.spaces.statusesOf("asked").includes(Status.REQUIRES_ACTION));
    expect((await suite.clients.calls.getToolCall({ callId: "asked" })).call?.state).toBe(ToolCallState.WAITING);
    await expect(suite.clients.calls.submitToolResult({ callId: "asked", runId: "other" })).rejects.toThrow(
      /no call asked of run other/,
    );
    const submissions = await Promise.allSettled(
      Array.from({ length: 10 }, (_, n) =>
        suite.clients.calls.submitToolResult({ callId: "asked", resultJson: String(n) }),
      ),
    );
    const won = submissions.filter(({ status }) => status === "fulfilled");
    expect(won).toHaveLength(1);
    const lost = submissions.find((one) => one.status === "rejected");
    expect(String(lost?.reason)).toMatch(/call asked is already resolved/);
    expect((await calling).output).toBe(submissions.findIndex(({ status }) => status === "fulfilled"));
    await until(() => suite.spaces.statusesOf("asked").includes(Status.COMPLETE));
    expect(suite.spaces.statusesOf("asked")).toEqual([Status.RUNNING, Status.REQUIRES_ACTION, Status.COMPLETE]);
    expect(suite.spaces.inbox.has("tr:asked")).toBe(false);
  });

  test("TOOL-4 TOOL-9 a call that nobody answers times out, and the late answer goes to the inbox", async () => {
    const tool = { name: "hurry", executionType: ExecutionType.SPACE, timeoutMs: 50 };
    await suite.clients.catalogue.applyTool({ tool });
    await suite.clients.agents.applyAgent({ agent: { name: "hasty", tools: { use: ["hurry"] } } });
    const sessionId = await openSession("hasty");
    suite.spaces.activeSpaces.set(sessionId, "room");
    const { output, isError } = await suite.clients.call({ sessionId, name: "hurry", callId: "late" });
    expect([output, isError]).toEqual([{ error: "Tool timed out after 50ms" }, true]);
    const { call } = await suite.clients.calls.submitToolResult({ callId: "late", resultJson: '"yes"' });
    expect(call).toMatchObject({ state: ToolCallState.RESOLVED, resolvedLate: true });
    const event = await until(() => suite.spaces.inbox.get("tr:late"));
    expect(event).toMatchObject({
      sessionId,
      agent: "hasty",
      event: { value: { tool: "hurry", result: { outputJson: '"yes"' } } },
    });
  });

  test("TOOL-4 an asynchronous tool answers with its pending call at once", async () => {
    const tool = { name: "order", executionType: ExecutionType.EXTERNAL, isAsync: true, visible: false };
    await suite.clients.catalogue.applyTool({ tool });
    await suite.clients.agents.applyAgent({ agent: { name: "buyer", tools: { use: ["order"] } } });
    const sessionId = await openSession("buyer");
    const { output } = await suite.clients.call({ sessionId, name: "order", callId: "ordered" });
    expect(output).toEqual({ status: "pending", pendingToolCallId: "ordered" });
    await suite.clients.calls.submitToolResult({ callId: "ordered", error: "sold out" });
    const event = await until(() => suite.spaces.inbox.get("tr:ordered"));
    expect(event.event.value).toMatchObject({ result: { isError: true, outputJson: '{"error":"sold out"}' } });
    const { calls } = await suite.clients.calls.listToolCalls({ sessionId, states: [ToolCallState.RESOLVED] });
    expect(calls.map(({ callId }) => callId)).toEqual(["ordered"]);
  });

  test("a second call of the same id joins the first, on any router, and is executed once", async () => {
    const sessionId = await openSession();
    const release = Promise.withResolvers<void>();
    suite.mcp.answer = async function* () {
      await release.promise;
      yield { event: { case: "result", value: { outputJson: '"once"' } } };
    };
    const request = { sessionId, name: "read", argumentsJson: '{"path":"a"}', callId: "joined" };
    const calls = Array.from({ length: 6 }, () => suite.clients.call(request));
    await until(() => suite.mcp.calls.some(({ callId }) => callId === "joined"));
    release.resolve();
    expect((await Promise.all(calls)).map(({ output }) => output)).toEqual(Array(6).fill("once"));
    expect((await suite.clients.call(request)).output).toBe("once");
    expect(suite.mcp.calls.filter(({ callId }) => callId === "joined")).toHaveLength(1);
    await expect(suite.clients.call({ ...request, sessionId: await openSession() })).rejects.toThrow(
      /belongs to another call/,
    );
  });

  test("LOOP-14 a call that was started by a router which is gone has an unknown outcome and is not repeated", async () => {
    const sessionId = await openSession();
    const record = {
      callId: "orphan",
      sessionId,
      tool: "@files/read_file",
      agent: "reader",
      state: "TOOL_CALL_STATE_STARTED",
    };
    await (await suite.bus.keyValue("toolbus_calls")).put("orphan", JSON.stringify(record));
    const request = { sessionId, name: "read", argumentsJson: '{"path":"a"}', callId: "orphan", recovering: true };
    expect(JSON.stringify((await suite.clients.call(request)).output)).toMatch(/outcome_unknown: /);
    expect(suite.mcp.calls.map(({ callId }) => callId)).not.toContain("orphan");
  });

  test("LOOP-15 cancelling a call reaches its provider", async () => {
    const sessionId = await openSession();
    suite.mcp.answer = async function* (_, signal) {
      yield { event: { case: "log", value: { message: "working" } } };
      await ended(signal);
    };
    const controller = new AbortController();
    const request = { sessionId, name: "read", argumentsJson: '{"path":"a"}', callId: "cancelled" };
    const calling = suite.clients.call(request, controller.signal);
    await until(() => suite.mcp.calls.some(({ callId }) => callId === "cancelled"));
    controller.abort();
    await expect(calling).rejects.toThrow();
    await until(() => suite.mcp.cancelled.includes("cancelled"));
  });

  test("CTR-1 what a caller declares is seen by the next listing and the next call", async () => {
    const sessionId = await openSession();
    await suite.clients.router.listTools({ sessionId });
    suite.caller.tools = [
      { tool: { name: "myapp_pick", effect: Effect.IDEMPOTENT, executionType: ExecutionType.CALLER } },
    ];
    expect((await suite.clients.call({ sessionId, name: "myapp_pick" })).isError).toBe(false);
    const { tools } = await suite.clients.router.listTools({ sessionId });
    expect(tools.map(({ modelName }) => modelName)).toContain("myapp_pick");
    suite.caller.tools = [];
    const { tools: fewer } = await suite.clients.router.listTools({ sessionId });
    expect(fewer.map(({ modelName }) => modelName)).not.toContain("myapp_pick");
  });

  test("a changed offer reaches the next listing; a provider that went away comes back by itself", async () => {
    const sessionId = await openSession();
    const namesOf = async () =>
      (await suite.clients.router.listTools({ sessionId })).tools.map(({ modelName }) => modelName);
    await namesOf();
    suite.mcp.offer([readFile, { source: "files", tool: { name: "list" } }], [{ source: "files", available: true }]);
    await until(async () => (await namesOf()).includes("files__list"));
    await mcpService[Symbol.asyncDispose]();
    await until(async () => {
      const { sources } = await suite.clients.router.listTools({ sessionId });
      return sources.some(({ source, available, reason }) => source === "files" && !available && reason !== "");
    });
    mcpService = suite.use(await suite.startMcp());
    suite.mcp.offer([readFile, removeFile], [{ source: "files", available: true }]);
    await until(async () => (await namesOf()).includes("files__remove_file"), { timeoutMs: 2_000 });
  });

  test("ORCH-5 explain tells the way and the rule that decides", async () => {
    const sessionId = await openSession();
    const blocked = await suite.clients.router.explainTool({ sessionId, name: "files__remove_file" });
    expect(blocked).toMatchObject({
      reference: "@files/remove_file",
      provider: "mcp",
      callable: false,
      rule: "not in tools.allowed",
    });
    expect(blocked.steps.filter(({ passed }) => !passed).map(({ stage }) => stage)).toEqual(["allowed"]);
    const aliased = await suite.clients.router.explainTool({ agent: "reader", name: "read" });
    expect(aliased).toMatchObject({ reference: "@files/read_file", callable: true });
    expect(await suite.clients.router.explainTool({ agent: "reader", name: "nothing" })).toMatchObject({
      reference: "",
      callable: false,
    });
    const unused = await suite.clients.router.explainTool({ agent: "hasty", name: "echo" });
    expect(unused).toMatchObject({ reference: "echo", callable: false, rule: "no entry of tools.use fits" });
  });

  test("ORCH-3 an agent with faults is refused with all of them; checking alone stores nothing", async () => {
    const aliases = { skip: "echo", lost: "nowhere", one: "two", two: "one" };
    const agent = { name: "faulty", sources: [{ name: "x", provider: "nobody" }], tools: { use: ["@x"], aliases } };
    const refusal = await suite.clients.agents.applyAgent({ agent }).catch(String);
    for (const fault of ["sources[0].provider", "aliases.skip", "aliases.lost", "aliases.one", "tools.use[0]"]) {
      expect(refusal).toContain(fault);
    }
    await suite.clients.agents.applyAgent({ agent: { name: "checked" }, validateOnly: true });
    await expect(suite.clients.agents.getAgent({ name: "checked" })).rejects.toThrow(/not_found/);
  });

  test("what one router is told, the other knows; sessions page and close", async () => {
    for (let round = 0; round < 10; round++) {
      const name = `round-${round}`;
      await suite.clients.agents.applyAgent({ agent: { name } });
      await openSession(name);
      expect((await suite.clients.agents.getAgent({ name })).agent?.agent?.name).toBe(name);
    }
    const first = await suite.clients.sessions.listSessions({ pageSize: 5 });
    const second = await suite.clients.sessions.listSessions({ pageSize: 5, pageToken: first.nextPageToken });
    expect(new Set([...first.sessions, ...second.sessions].map(({ id }) => id)).size).toBe(10);
    const sessionId = await openSession();
    await suite.clients.sessions.closeSession({ sessionId });
    await expect(suite.clients.call({ sessionId, name: "echo" })).rejects.toThrow(/is closed/);
  });
});

describe("the tool router's files", () => {
  test("are loaded, reloaded and removed; a bad edit keeps the last good content and is told", async () => {
    await using suite = await openTestRouter();
    const [agentFile, toolFile] = [join(suite.agentsDirectory, "writer.json"), join(suite.toolsDirectory, "note.json")];
    await mkdir(suite.agentsDirectory);
    await mkdir(suite.toolsDirectory);
    const tool = { name: "note", executionType: "internal" };
    const agent = { name: "writer", tools: { use: ["note"] }, workers: [{ name: "text", file: "text.py" }] };
    await writeFile(toolFile, JSON.stringify(tool));
    await writeFile(agentFile, JSON.stringify(agent));
    for (const instance of ["a", "b"]) suite.use(await suite.startRouter(instance));
    const written = async () => (await suite.clients.agents.getAgent({ name: "writer" })).agent;
    const source = { name: "text", provider: "worker", config: { file: "text.py" } };
    expect(await written()).toMatchObject({ origin: "writer.json", agent: { sources: [source] } });
    const { revision } = (await written())!;

    const watching = new AbortController();
    const told: { faults: string[] }[] = [];
    const watch = (async () => {
      for await (const one of suite.clients.agents.watchAgents({}, { signal: watching.signal })) told.push(one);
    })().catch(() => {}); // ended by the test
    await writeFile(agentFile, JSON.stringify({ ...agent, tools: { use: "note" }, colour: "red" }));
    await until(() => told.some(({ faults }) => faults.length === 2));
    expect(told.at(-1)?.faults).toEqual([
      "agents/writer.json: colour: is not a known field",
      "agents/writer.json: tools.use: must be array",
    ]);
    expect((await written())?.revision).toBe(revision);
    await writeFile(agentFile, JSON.stringify({ ...agent, description: "better" }));
    await until(async () => (await written())?.agent?.description === "better");
    await expect(suite.clients.agents.applyAgent({ agent: { name: "writer" } })).rejects.toThrow(
      /comes from the file writer.json/,
    );
    await rm(agentFile);
    await until(async () => (await suite.clients.agents.listAgents({})).agents.length === 0);
    watching.abort();
    await watch;
  });
});
