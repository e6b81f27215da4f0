import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { until } from "#runtime/time/until.ts";
import { ended } from "../fakes/fake-provider.ts";
import { storedCall } from "../fakes/stored.ts";
import { openReader, type Reader, readFile } from "../peers/reader.ts";

describe("repeated, orphaned and canceled calls, on the bus", () => {
  let suite: Reader;
  beforeAll(async () => {
    suite = await openReader();
  });
  afterAll(() => suite[Symbol.asyncDispose]());

  test("a second call of the same id joins the first, on any router, and is executed once", async () => {
    const sessionId = await suite.openSession();
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
    await expect(suite.clients.call({ ...request, sessionId: await suite.openSession() })).rejects.toThrow(
      /belongs to another call, which differs in session/,
    );
  });

  test("what asks for something else under the id of a call is refused, in flight, afterwards, and after a crash", async () => {
    const sessionId = await suite.openSession();
    const release = Promise.withResolvers<void>();
    suite.mcp.answer = async function* () {
      await release.promise;
      yield { event: { case: "result", value: { outputJson: '"first"' } } };
    };
    const request = { sessionId, name: "read", argumentsJson: '{"path":"a"}', callId: "taken" };
    const other = { ...request, argumentsJson: '{"path":"b"}' };
    const first = suite.clients.call(request);
    await until(() => suite.mcp.calls.some(({ callId }) => callId === "taken"));
    const isRefused = async (differences: string, repeated: typeof request & { recovering?: boolean }) => {
      const refused = suite.clients.call(repeated).then(() => undefined, failureFromConnectError);
      expect(await refused).toMatchObject({
        code: "already_exists",
        reason: "CALL_ID_REUSED",
        metadata: { differences },
      });
    };
    for (let again = 0; again < 4; again++) await isRefused("arguments", other); // on both routers
    release.resolve();
    expect((await first).output).toBe("first");
    await isRefused("arguments", other);
    await isRefused("arguments", { ...other, recovering: true });
    expect((await suite.clients.call({ ...request, argumentsJson: '{ "path": "a" }', recovering: true })).output).toBe(
      "first",
    );
    suite.spaces.activeSpaces.set(sessionId, "room");
    await isRefused("tool", { ...request, name: "ask", recovering: true });
  });

  test("a call that was canceled under way keeps its id, too", async () => {
    const sessionId = await suite.openSession();
    suite.spaces.activeSpaces.set(sessionId, "room");
    const request = { sessionId, name: "ask", argumentsJson: '{"a":1}', callId: "called-off" };
    const asking = suite.clients.call(request);
    await until(() => suite.clients.calls.getToolCall({ callId: request.callId }).catch(() => undefined));
    await suite.clients.calls.cancelToolCall({ callId: request.callId });
    expect((await asking).isError).toBe(true);
    await expect(suite.clients.call({ ...request, argumentsJson: '{"a":2}' })).rejects.toThrow(/differs in arguments/);
    expect((await suite.clients.call(request)).output).toEqual({ error: "the call was canceled" });
  });

  test("LOOP-14 a call that was started by a router which is gone has an unknown outcome and is not repeated", async () => {
    const sessionId = await suite.openSession();
    const record = {
      callId: "orphan",
      sessionId,
      tool: "@files/read_file",
      agent: "reader",
      argumentsJson: '{"path":"a"}',
      state: "TOOL_CALL_STATE_STARTED",
    };
    await suite.bus.jetstream.publish("$KV.toolbus_calls.orphan", storedCall(record));
    const request = { sessionId, name: "read", argumentsJson: '{"path":"a"}', callId: "orphan", recovering: true };
    expect(JSON.stringify((await suite.clients.call(request)).output)).toMatch(/outcome_unknown: /);
    expect(suite.mcp.calls.map(({ callId }) => callId)).not.toContain("orphan");
  });

  test("KIND-2 a result says who executed the call and how often it was tried, also to who repeats it and after a crash", async () => {
    const sessionId = await suite.openSession();
    suite.mcp.answer = async function* () {
      yield { event: { case: "result", value: { outputJson: '"done"' } } };
    };
    const { MCP, SPACE, INTERNAL } = ExecutionType;
    const request = { sessionId, name: "read", argumentsJson: '{"path":"a"}', callId: "told" };
    const byMcp = { executionType: MCP, provider: "mcp", attemptCount: 1 };
    expect((await suite.clients.call(request)).execution).toMatchObject(byMcp);
    expect((await suite.clients.call({ ...request, recovering: true })).execution).toMatchObject(byMcp);

    const orphan = { callId: "left", sessionId, tool: "@files/read_file", agent: "reader" };
    const record = { ...orphan, argumentsJson: '{"path":"a"}', state: "TOOL_CALL_STATE_STARTED" };
    const begun = { execution: { executionType: "EXECUTION_TYPE_MCP", provider: "mcp" } };
    await suite.bus.jetstream.publish("$KV.toolbus_calls.left", storedCall(record, begun));
    const left = await suite.clients.call({ ...request, callId: "left", recovering: true });
    expect(left).toMatchObject({ isError: true, execution: { ...byMcp, attemptCount: 0 } });

    suite.spaces.activeSpaces.set(sessionId, "room");
    const asked = { sessionId, name: "ask", argumentsJson: "{}", callId: "told-person" };
    const asking = suite.clients.call(asked);
    await until(() => suite.clients.calls.getToolCall({ callId: asked.callId }).catch(() => undefined));
    const outcome = { case: "resultJson", value: "1" } as const;
    await suite.clients.calls.submitToolResult({ callId: asked.callId, outcome });
    const byPerson = { executionType: SPACE, provider: "", attemptCount: 0 };
    expect((await asking).execution).toMatchObject(byPerson);
    expect((await suite.clients.call({ ...asked, recovering: true })).execution).toMatchObject(byPerson);

    const echoed = await suite.clients.call({ sessionId, name: "echo", argumentsJson: "{}", callId: "told-echo" });
    expect(echoed.execution).toMatchObject({ executionType: INTERNAL, provider: "", attemptCount: 0 });
    const refused = await suite.clients.call({ sessionId, name: "remove_file", argumentsJson: "{}", callId: "no" });
    expect(refused).toMatchObject({ isError: true, execution: undefined });
  });

  test("LOOP-14 a started call keeps its unknown outcome, though its agent may no longer make it", async () => {
    const tools = { use: ["@files/*"] };
    const sources = [{ name: "files", provider: "mcp", config: { command: "files" } }];
    await suite.clients.agents.applyAgent({ agent: { name: "changing", sources, tools } });
    const sessionId = await suite.openSession("changing");
    const facts = { sessionId, tool: "@files/read_file", agent: "changing", state: "TOOL_CALL_STATE_STARTED" };
    const record = { callId: "changed", ...facts };
    await suite.bus.jetstream.publish("$KV.toolbus_calls.changed", storedCall(record));
    await suite.clients.agents.applyAgent({ agent: { name: "changing", sources, tools: { use: [] } } });
    const request = { sessionId, name: "files__read_file", argumentsJson: "{}", callId: "changed", recovering: true };
    expect(JSON.stringify((await suite.clients.call(request)).output)).toMatch(/outcome_unknown: /);
  });

  test("LOOP-14 the largest arguments and results that are passed on fit their record, and the caller gets all", async () => {
    const sessionId = await suite.openSession();
    const text = '"'.repeat(120_000); // each of these takes four bytes as JSON in JSON
    const outputSchemaJson = JSON.stringify({ description: "x".repeat(200_000) });
    const tool = { ...readFile.tool, outputSchemaJson };
    suite.mcp.offer([{ source: "files", tool }], [{ source: "files", available: true }]);
    await until(async () => {
      const { tools } = await suite.clients.router.listTools({ scope: { case: "session", value: { sessionId } } });
      return tools.some((one) => one.tool?.outputSchemaJson === outputSchemaJson);
    });
    suite.mcp.answer = async function* () {
      yield { event: { case: "result", value: { outputJson: JSON.stringify(text) } } };
    };
    const argumentsJson = JSON.stringify({ path: text });
    const request = { sessionId, name: "read", callId: "large", argumentsJson };
    expect((await suite.clients.call(request)).output).toBe(text);
    const { call } = await suite.clients.calls.getToolCall({ callId: "large" });
    expect(call).toMatchObject({ state: ToolCallState.RESOLVED, outputSchemaJson: "" });
    expect(Buffer.byteLength(JSON.stringify(call?.result?.outputJson))).toBeLessThan(600_000);
  });

  test("LOOP-15 canceling a call reaches its provider", async () => {
    const sessionId = await suite.openSession();
    suite.mcp.answer = async function* (_, signal) {
      yield { event: { case: "log", value: { message: "working" } } };
      await ended(signal);
    };
    const controller = new AbortController();
    const request = { sessionId, name: "read", argumentsJson: '{"path":"a"}', callId: "canceled" };
    const calling = suite.clients.call(request, controller.signal);
    await until(() => suite.mcp.calls.some(({ callId }) => callId === "canceled"));
    controller.abort();
    await expect(calling).rejects.toThrow();
    await until(() => suite.mcp.canceled.includes("canceled"));
  });
});
