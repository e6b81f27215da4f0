import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { ToolMessageState as Status } from "#gen/toolbus/space/v1/space_pb.ts";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { until } from "#runtime/time/until.ts";
import { ExternalService, neither, takeOnly } from "../peers/external-service.ts";
import { type ExternalTools, openExternalTools } from "../peers/external-tools.ts";

const patience = { timeoutMs: 20_000 };

describe("how calls end that somebody outside answers: in time, expired, canceled", () => {
  let external: ExternalTools;
  let callers: ReturnType<ExternalTools["clientsOf"]>;
  let watchers: ReturnType<ExternalTools["clientsOf"]>;
  beforeAll(async () => {
    external = await openExternalTools("callers", "watchers");
    callers = external.clientsOf("callers");
    watchers = external.clientsOf("watchers");
  });
  afterAll(() => external[Symbol.asyncDispose]());

  const audited = async (callId: string, kind: AuditKind) => {
    const { events } = await callers.audit.listAuditEvents({ filter: { kinds: [kind] } });
    return events.some((event) => event.callId === callId);
  };

  test("TOOL-5 at its expiry a pending call's message turns error, the inbox is told, and results are refused", async () => {
    const sessionId = await external.openSession();
    external.spaces.activeSpaces.set(sessionId, "room");
    const { output } = await callers.call({ sessionId, name: "shown", callId: "expiring" });
    expect(output).toEqual({ status: "pending", pendingToolCallId: "expiring" });
    const event = await until(() => external.spaces.inbox.get("tr:expiring"), patience);
    expect(event.event.value).toMatchObject({
      result: { isError: true, outputJson: expect.stringMatching(/expired/) },
    });
    expect(external.spaces.statusesOf("expiring").at(-1)).toBe(Status.ERROR);
    expect(await external.whenRecorded("expiring", ({ state }) => state)).toBe(ToolCallState.EXPIRED);
    const late = watchers.calls.submitToolResult({ callId: "expiring", outcome: { case: "resultJson", value: "1" } });
    await expect(late).rejects.toThrow(/call expiring has expired/);
    await until(() => audited("expiring", AuditKind.EXPIRED), patience);
  });

  test("TOOL-5 a watcher that has taken a call is told that it has expired", async () => {
    const sessionId = await external.openSession();
    await using service = new ExternalService(watchers.calls, { tools: ["reserve"] }, takeOnly);
    await callers.call({ sessionId, name: "reserve", callId: "reserved" });
    const told = await until(() => service.handed.find(({ withdrawn }) => withdrawn), patience);
    expect(told.call).toMatchObject({ callId: "reserved", state: ToolCallState.EXPIRED });
  });

  test("TOOL-4 the end of a wait is on the trail", async () => {
    const sessionId = await external.openSession();
    await using _ = new ExternalService(watchers.calls, { tools: ["hurry"] }, neither);
    await callers.call({ sessionId, name: "hurry", callId: "waited" });
    await until(() => audited("waited", AuditKind.TIMED_OUT), patience);
  });

  test("LOOP-15 a call that is canceled before it starts is not begun later, on any router", async () => {
    const sessionId = await external.openSession();
    await using service = new ExternalService(watchers.calls, { tools: ["charge", "weigh"] });
    for (const name of ["charge", "weigh"]) {
      const callId = `buried-${name}`;
      expect((await watchers.calls.cancelToolCall({ callId, reason: "run canceled" })).started).toBe(false);
      expect((await callers.calls.cancelToolCall({ callId })).started).toBe(false);
      for (const client of [callers, watchers]) {
        const { output, isError } = await client.call({ sessionId, name, callId });
        expect([output, isError]).toEqual([{ error: "the call was canceled: run canceled" }, true]);
      }
    }
    expect(service.callIds).toEqual([]);
    await until(() => audited("buried-charge", AuditKind.CANCELED), patience);
  });

  test("LOOP-15 a call that waits for a watcher is canceled before it starts; its caller is told at once", async () => {
    const sessionId = await external.openSession();
    await using service = new ExternalService(watchers.calls, { tools: ["charge"] }, neither);
    const calling = callers.call({ sessionId, name: "charge", callId: "unstarted" });
    await until(() => service.callIds.includes("unstarted"), patience);
    expect((await watchers.calls.cancelToolCall({ callId: "unstarted" })).started).toBe(false);
    expect(await calling).toMatchObject({ isError: true, output: { error: "the call was canceled" } });
    const told = await until(() => service.handed.find(({ withdrawn }) => withdrawn), patience);
    expect(told.call?.callId).toBe("unstarted");
    const { deliveryId } = service.handed[0]!;
    const taking = watchers.calls.acknowledgeToolCall({ callId: "unstarted", deliveryId });
    await expect(taking).rejects.toThrow(/is already resolved/);
  });

  test("LOOP-15 canceling a call that a watcher has taken reaches it, and says that it had started", async () => {
    const sessionId = await external.openSession();
    await using service = new ExternalService(watchers.calls, { tools: ["charge"] }, takeOnly);
    const calling = callers.call({ sessionId, name: "charge", callId: "started" });
    await external.whenRecorded("started", ({ taken }) => taken);
    expect((await callers.calls.cancelToolCall({ callId: "started" })).started).toBe(true);
    expect((await calling).output).toEqual({ error: "outcome_unknown: the call was canceled" });
    const told = await until(() => service.handed.find(({ withdrawn }) => withdrawn), patience);
    expect(told).toMatchObject({ call: { callId: "started", state: ToolCallState.CANCELED } });
    expect((await watchers.calls.cancelToolCall({ callId: "started" })).started).toBe(true);
  });

  test("BUS-4 a run's call that its process puts down waits on, and whoever comes back for it gets its answer", async () => {
    const sessionId = await external.openSession();
    await using service = new ExternalService(watchers.calls, { tools: ["charge"] }, neither);
    const request = { sessionId, name: "charge", callId: "put-down", runId: "r1" };
    const leaving = new AbortController();
    const calling = callers.call(request, leaving.signal).catch(String);
    await until(() => service.callIds.includes("put-down"), patience);
    leaving.abort();
    await calling;
    expect(await external.whenRecorded("put-down", ({ state }) => state !== ToolCallState.WAITING && state)).toBe(
      ToolCallState.PENDING,
    );
    const again = callers.call({ ...request, recovering: true });
    await watchers.calls.submitToolResult({ callId: "put-down", outcome: { case: "resultJson", value: '"paid"' } });
    expect((await again).output).toBe("paid");
  });

  test("LOOP-15 canceling a call that has its result changes nothing, and nothing is audited as canceled", async () => {
    const sessionId = await external.openSession();
    await using _ = new ExternalService(watchers.calls, { tools: ["weigh"] });
    await callers.call({ sessionId, name: "weigh", callId: "over", argumentsJson: '{"kilos":1}' });
    expect((await callers.calls.cancelToolCall({ callId: "over" })).started).toBe(true);
    await callers.calls.cancelToolCall({ callId: "never" });
    await until(() => audited("never", AuditKind.CANCELED), patience); // what came before it is on the trail by then
    expect(await audited("over", AuditKind.CANCELED)).toBeFalsy();
    expect((await callers.calls.getToolCall({ callId: "over" })).call).toMatchObject({
      state: ToolCallState.RESOLVED,
      result: { outputJson: '{"kilos":1}' },
    });
  });

  test("LOOP-15 canceling a call that a provider runs reaches the provider, from any router", async () => {
    const { agents, sessions } = callers;
    const mcp = await external.startMcp();
    external.mcp.offer([{ source: "files", tool: { name: "slow" } }], [{ source: "files", available: true }]);
    external.mcp.answer = async function* (_, signal) {
      yield { event: { case: "progress", value: { progress: 1 } } };
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    };
    await agents.applyAgent({
      agent: { name: "reader", sources: [{ name: "files", provider: "mcp" }], tools: { use: ["@files/*"] } },
    });
    await sessions.createSession({ agent: "reader", sessionId: "reading" });
    const calling = callers.call({ sessionId: "reading", name: "files__slow", callId: "running" });
    await until(() => external.mcp.calls.some(({ callId }) => callId === "running"), patience);
    expect((await watchers.calls.cancelToolCall({ callId: "running" })).started).toBe(true);
    await until(() => external.mcp.canceled.includes("running"), patience);
    expect((await calling).output).toEqual({ error: "outcome_unknown: the call was canceled" });
    await mcp[Symbol.asyncDispose]();
  });
});
