import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ToolMessageState as Status } from "#gen/toolbus/space/v1/space_pb.ts";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { until } from "#runtime/time/until.ts";
import { ExternalService } from "../peers/external-service.ts";
import { openReader, type Reader } from "../peers/reader.ts";

describe("calls that somebody outside answers, on the bus", () => {
  let suite: Reader;
  beforeAll(async () => {
    suite = await openReader();
  });
  afterAll(() => suite[Symbol.asyncDispose]());

  test("TOOL-11 a visible tool outside a space runs nothing and says so", async () => {
    const { output } = await suite.clients.call({ sessionId: await suite.openSession(), name: "ask" });
    expect(output).toEqual({ error: 'Tool "ask" is visible but you are not in a space. Call enter_space first.' });
  });

  test("TOOL-4 TOOL-7 TOOL-8 a person's answer ends the call at once, one submission wins, and the message follows", async () => {
    const sessionId = await suite.openSession();
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
    const slip = (given: object) => suite.clients.calls.submitToolResult({ callId: "asked", ...given });
    const foreign = { runId: "other", outcome: { case: "resultJson", value: "1" } };
    await expect(slip(foreign)).rejects.toThrow(/no call asked of run other/);
    await expect(slip({}), "a slip ends nothing").rejects.toThrow(/outcome: exactly one field is required/);
    for (const kind of ["resultJson", "error"])
      await expect(slip({ outcome: { case: kind, value: "" } })).rejects.toThrow(/invalid_argument/);
    const submissions = await Promise.allSettled(
      Array.from({ length: 10 }, (_, n) =>
        suite.clients.calls.submitToolResult({ callId: "asked", outcome: { case: "resultJson", value: String(n) } }),
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

  test("TOOL-7 ten submitters race with ids of their own: the winner is told that it won however often it asks, the others are not", async () => {
    const sessionId = await suite.openSession();
    suite.spaces.activeSpaces.set(sessionId, "room");
    const calling = suite.clients.call({ sessionId, name: "ask", callId: "contested" });
    await until(() => suite.spaces.statusesOf("contested").includes(Status.REQUIRES_ACTION));
    const submit = (n: number, value = String(n), submissionId = `by ${n}`) =>
      suite.clients.calls.submitToolResult({
        ...{ callId: "contested", submissionId },
        outcome: { case: "resultJson", value },
      });
    const race = () => Promise.allSettled(Array.from({ length: 10 }, (_, n) => submit(n)));
    const winner = (await race()).findIndex(({ status }) => status === "fulfilled");
    expect((await calling).output).toBe(winner);
    const again = await race();
    for (const [n, outcome] of again.entries()) {
      if (outcome.status === "fulfilled") expect(n).toBe(winner);
      else expect(String(outcome.reason)).toMatch(/failed_precondition.*call contested is already resolved/);
    }
    expect(again[winner]?.status).toBe("fulfilled");
    await expect(submit(winner, '"other"')).rejects.toThrow(/already_exists.*stands for another outcome/);
    await expect(submit(winner, String(winner), ""), "only one try can win without an id").rejects.toThrow(
      /is already resolved/,
    );
  });

  test("TOOL-4 TOOL-9 a call that nobody answers times out, and the late answer goes to the inbox", async () => {
    const tool = { name: "hurry", executionType: ExecutionType.SPACE, timeout: durationFromMs(50) };
    await suite.clients.catalogue.applyCatalogTool({ tool });
    await suite.clients.agents.applyAgent({ agent: { name: "hasty", tools: { use: ["hurry"] } } });
    const sessionId = await suite.openSession("hasty");
    suite.spaces.activeSpaces.set(sessionId, "room");
    const { output, isError } = await suite.clients.call({ sessionId, name: "hurry", callId: "late" });
    expect([output, isError]).toEqual([{ error: "Tool timed out after 50ms" }, true]);
    const { call } = await suite.clients.calls.submitToolResult({
      callId: "late",
      outcome: { case: "resultJson", value: '"yes"' },
    });
    expect(call).toMatchObject({ state: ToolCallState.RESOLVED, resolvedLate: true });
    const event = await until(() => suite.spaces.inbox.get("tr:late"));
    expect(event).toMatchObject({
      sessionId,
      agent: "hasty",
      event: { value: { tool: "hurry", result: { outputJson: '"yes"' } } },
    });
  });

  test("TOOL-4 a tool whose time is 30 days waits for its answer", async () => {
    const tool = { name: "patient", executionType: ExecutionType.SPACE, timeout: durationFromMs(30 * 86_400_000) };
    const hurry = { name: "hurry", executionType: ExecutionType.SPACE, timeout: durationFromMs(50) };
    for (const one of [tool, hurry]) await suite.clients.catalogue.applyCatalogTool({ tool: one });
    await suite.clients.agents.applyAgent({ agent: { name: "patient", tools: { use: ["patient", "hurry"] } } });
    const sessionId = await suite.openSession("patient");
    suite.spaces.activeSpaces.set(sessionId, "room");
    const calling = suite.clients.call({ sessionId, name: "patient", callId: "patient" });
    await until(() => suite.spaces.statusesOf("patient").includes(Status.REQUIRES_ACTION));
    await suite.clients.call({ sessionId, name: "hurry" }); // ends by its time, which one that overflows would be before
    await suite.clients.calls.submitToolResult({
      callId: "patient",
      outcome: { case: "resultJson", value: '"at last"' },
    });
    expect((await calling).output).toBe("at last");
  });

  test("TOOL-4 an asynchronous tool answers with its pending call at once", async () => {
    const tool = { name: "order", executionType: ExecutionType.EXTERNAL, isAsync: true, visible: false };
    await suite.clients.catalogue.applyCatalogTool({ tool });
    await suite.clients.agents.applyAgent({ agent: { name: "buyer", tools: { use: ["order"] } } });
    const sessionId = await suite.openSession("buyer");
    const { output } = await suite.clients.call({ sessionId, name: "order", callId: "ordered" });
    expect(output).toEqual({ status: "pending", pendingToolCallId: "ordered" });
    await suite.clients.calls.submitToolResult({ callId: "ordered", outcome: { case: "error", value: "sold out" } });
    const event = await until(() => suite.spaces.inbox.get("tr:ordered"));
    expect(event.event.value).toMatchObject({ result: { isError: true, outputJson: '{"error":"sold out"}' } });
    const { calls } = await suite.clients.calls.listToolCalls({ sessionId, states: [ToolCallState.RESOLVED] });
    expect(calls.map(({ callId }) => callId)).toEqual(["ordered"]);
  });

  test.each([
    ["an asynchronous call", "asked-0", { isAsync: true }, { status: "pending", pendingToolCallId: "asked-0" }],
    [
      "a call whose time was over",
      "asked-1",
      { timeout: durationFromMs(300) },
      { error: "Tool timed out after 300ms" },
    ],
  ])(
    "TOOL-9 a run that asks again for %s is told what it was told, and its result by the inbox alone",
    async (_, callId, more, told) => {
      const tool = { name: callId, executionType: ExecutionType.EXTERNAL, visible: false, ...more };
      await suite.clients.catalogue.applyCatalogTool({ tool });
      await suite.clients.agents.applyAgent({ agent: { name: "asker", tools: { use: ["asked-0", "asked-1"] } } });
      const asked = { sessionId: await suite.openSession("asker"), runId: `run-${callId}`, name: callId, callId };
      expect((await suite.clients.call(asked)).output).toEqual(told);
      await suite.clients.calls.submitToolResult({ callId, outcome: { case: "resultJson", value: '"shipped"' } });
      expect((await suite.clients.call({ ...asked, recovering: true })).output).toEqual(told);
      const event = await until(() => suite.spaces.inbox.get(`tr:${callId}`));
      expect(event.event.value).toMatchObject({ result: { outputJson: '"shipped"' } });
    },
  );

  test("TOOL-6 TOOL-8 arguments that cannot be recorded whole are refused instead of being shown as a digest to whoever answers", async () => {
    const { call, calls, catalogue, agents } = suite.clients;
    const whole = { executionType: ExecutionType.EXTERNAL, visible: false, timeout: durationFromMs(2_000) };
    await catalogue.applyCatalogTool({ tool: { name: "store", ...whole } });
    await agents.applyAgent({ agent: { name: "keeper", tools: { use: ["store", "ask"] } } });
    const sessionId = await suite.openSession("keeper");
    suite.spaces.activeSpaces.set(sessionId, "room");
    await using service = new ExternalService(calls, { tools: ["store"] });
    const textOf = (length: number) => JSON.stringify({ text: "x".repeat(length) });
    for (const name of ["store", "ask"]) {
      const callId = `large-${name}`;
      const { output, isError } = await call({ sessionId, name, callId, argumentsJson: textOf(400_000) });
      expect(isError, name).toBe(true);
      expect(JSON.stringify(output)).toMatch(/400011 bytes.* at most 262144/);
      await expect(calls.getToolCall({ callId }), "nothing was recorded").rejects.toThrow(/there is no call/);
    }
    expect(suite.spaces.statusesOf("large-ask")).toEqual([]);
    const { output } = await call({ sessionId, name: "store", argumentsJson: textOf(250_000) });
    expect(output).toEqual(JSON.parse(textOf(250_000)));
    expect(service.handed).toHaveLength(1);
  });

  test("BUS-4 a call that waits outlives the loss of the bus and the router that took it", async () => {
    const sessionId = await suite.openSession();
    suite.spaces.activeSpaces.set(sessionId, "room");
    const request = { sessionId, name: "ask", callId: "outlives" };
    const first = suite.clients.call(request).catch(() => "lost");
    await until(() => suite.spaces.statusesOf("outlives").includes(Status.REQUIRES_ACTION));
    await suite.clients.calls.getToolCall({ callId: "outlives" }); // by then the router has heard that it is shown
    await suite.bus.server.kill();
    await suite.bus.server.restart();
    await first;
    await until(() => suite.clients.calls.getToolCall({ callId: "outlives" }).catch(() => undefined)); // served again
    const again = suite.clients.call({ ...request, recovering: true });
    await suite.clients.calls.submitToolResult({
      callId: "outlives",
      outcome: { case: "resultJson", value: '"still here"' },
    });
    expect((await again).output).toBe("still here");
    expect(suite.spaces.statusesOf("outlives").filter((status) => status === Status.RUNNING)).toHaveLength(1);
  });

  test("TOOL-6 a watch of a tool that there is not is told so at once, and gets its calls when the tool is added", async () => {
    const { calls, catalogue, agents } = suite.clients;
    await using service = new ExternalService(calls, { tools: ["comes_later", "ask"] });
    await until(() => service.notices.length === 2);
    expect(service.notices).toEqual([
      'there is no tool "comes_later": calls come when it is added',
      'tool "ask" is of kind space: services outside execute those of kind external',
    ]);
    await catalogue.applyCatalogTool({
      tool: {
        name: "comes_later",
        executionType: ExecutionType.EXTERNAL,
        visible: false,
        timeout: durationFromMs(20_000),
      },
    });
    await agents.applyAgent({ agent: { name: "late", tools: { use: ["comes_later"] } } });
    const sessionId = await suite.openSession("late");
    const { output } = await suite.clients.call({ sessionId, name: "comes_later", argumentsJson: '{"n":1}' });
    expect(output).toEqual({ n: 1 });
    await using other = new ExternalService(calls, { tools: ["comes_later"] });
    await suite.clients.call({ sessionId, name: "comes_later" });
    expect(other.notices).toEqual([]);
  });

  test("a list of calls is paged, and of a session it holds that session's calls", async () => {
    const [sessionId, other] = [await suite.openSession(), await suite.openSession()];
    for (const id of [sessionId, other]) suite.spaces.activeSpaces.set(id, "room");
    const asking = [sessionId, other, sessionId, sessionId].map((id, n) =>
      suite.clients.call({ sessionId: id, name: "ask", callId: `listed-${n}` }),
    );
    await until(() => suite.spaces.messages.filter(({ callId }) => callId.startsWith("listed-")).length >= 8);
    const { calls } = suite.clients;
    const page = await calls.listToolCalls({ sessionId, pageSize: 2 });
    const rest = await calls.listToolCalls({ sessionId, pageSize: 2, pageToken: page.nextPageToken });
    expect([...page.calls, ...rest.calls].map(({ callId }) => callId)).toEqual(["listed-0", "listed-2", "listed-3"]);
    expect([page.calls.length, rest.nextPageToken]).toEqual([2, ""]);
    const { calls: ofOther } = await calls.listToolCalls({ sessionId: other });
    expect(ofOther.map(({ callId }) => callId)).toEqual(["listed-1"]);
    await expect(calls.listToolCalls({ sessionId: other, pageToken: page.nextPageToken })).rejects.toThrow(
      /page_token: /,
    );
    for (let n = 0; n < 4; n++)
      await calls.submitToolResult({ callId: `listed-${n}`, outcome: { case: "resultJson", value: "1" } });
    await Promise.all(asking);
  });
});
