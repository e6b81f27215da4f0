import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { readSubject } from "#runtime/bus/streams/read.ts";
import { shrinkStore } from "#runtime/bus/testing/shrink-store.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { createResultStore } from "#runtime/results/store/store.ts";
import { until } from "#runtime/time/until.ts";
import { asCaller, asOperator, asPrincipal } from "../../../../test/harness/callers.ts";
import { ended } from "../fakes/fake-provider.ts";
import { ExternalService, neither } from "../peers/external-service.ts";
import { openReader, type Reader, readFile } from "../peers/reader.ts";

const as = asPrincipal;
const notOwner = { code: "permission_denied", reason: "PRINCIPAL_NOT_OWNER" };

describe("calls of one principal, and another one that knows their ids", () => {
  let suite: Reader;
  let sessionId = "";
  beforeAll(async () => {
    suite = await openReader();
    await shrinkStore(suite.bus, "KV_toolbus_sessions", 256 * 1_024);
    const tool = { ...readFile.tool, effect: Effect.PURE };
    suite.mcp.offer([{ source: "files", tool }], [{ source: "files", available: true }]);
    const agent = { name: "weigher", tools: { use: ["weigh"] } };
    const weigh = { name: "weigh", executionType: ExecutionType.EXTERNAL, visible: false, isAsync: true };
    await suite.clients.catalogue.applyCatalogTool({ tool: weigh });
    await suite.clients.agents.applyAgent({ agent });
    sessionId = "alices";
    await suite.clients.sessions.createSession({ agent: "reader", sessionId }, as("alice"));
    await suite.clients.sessions.createSession({ agent: "weigher", sessionId: "weighed" }, as("alice"));
  });
  afterAll(() => suite[Symbol.asyncDispose]());

  const failureOf = (attempt: Promise<unknown>) => attempt.then(() => undefined, failureFromConnectError);

  test("SEC-2 a session that was forgotten for want of room, and opened by another principal, is that principal's alone", async () => {
    const { sessions } = suite.clients;
    const [session, id] = [{ agent: "reader", sessionId: "passed-on" }, { sessionId: "passed-on" }];
    await sessions.createSession(session, as("mallory"));
    for (let n = 0; n < 8; n += 1) await sessions.getSession(id, as("mallory")); // so that both routers know it
    await suite.bus.manager.streams.purge("KV_toolbus_sessions", { filter: "$KV.toolbus_sessions.passed-on" });
    await sessions.createSession(session, as("alice"));
    const failuresOf = (principal: string) =>
      Promise.all(Array.from({ length: 16 }, () => failureOf(sessions.getSession(id, as(principal)))));
    const isRefused = (failure: unknown) => failure !== undefined;
    await until(async () => !(await failuresOf("alice")).some(isRefused), { timeoutMs: 20_000 });
    await until(async () => (await failuresOf("mallory")).every(isRefused), { timeoutMs: 20_000 });
    for (const failure of await failuresOf("mallory")) expect(failure).toMatchObject(notOwner);
  });

  test("SEC-6 what is audited of a session counts to its principal, whose events leave first", async () => {
    const { bus, clients, mcp } = suite;
    const { sessions, router } = clients;
    const { session } = await sessions.createSession({ agent: "reader", sessionId: "noisy" }, as("mallory"));
    const tokensByKind = async () => {
      const found = new Map<string, number>();
      for await (const { subject, data } of readSubject(bus, "toolbus.audit.tool-router.>")) {
        const tokens = subject.split(".");
        if (new TextDecoder().decode(data).includes('"noisy"')) found.set(tokens[3]!, tokens.length);
      }
      return found;
    };
    const toldOf = (kind: string) => until(async () => (await tokensByKind()).has(kind));
    mcp.offer([readFile], [{ source: "files", available: false, reason: "it is broken" }]);
    await router.listTools({ scope: { case: "session", value: { sessionId: "noisy" } } }, as("mallory"));
    await toldOf("unavailable");
    mcp.offer([readFile], [{ source: "files", available: true }]);
    await toldOf("available");
    await sessions.switchAgent({ sessionId: "noisy", agent: "weigher" }, as("mallory"));
    const stale = { sessionId: "noisy", name: "read", contextRevision: session?.contextRevision ?? 0 };
    const called = async () => {
      for await (const _ of router.callTool(stale, as("mallory")));
    };
    expect(await failureOf(called())).toMatchObject({ reason: "AGENT_SWITCHED" });
    for (const kind of ["torn_down", "built", "switched", "blocked"]) await toldOf(kind);
    expect([...(await tokensByKind())].filter(([, tokens]) => tokens !== 5)).toEqual([]);
  });

  test("LOOP-15 ORCH-1 a call that is not recorded is canceled by its owner, not by who knows its id", async () => {
    const { calls } = suite.clients;
    suite.mcp.answer = async function* (_, signal) {
      yield { event: { case: "log", value: { message: "working" } } };
      await ended(signal);
    };
    const request = { sessionId, name: "read", argumentsJson: '{"path":"a"}', callId: "pure" };
    const calling = suite.clients.call(request);
    await until(() => suite.mcp.calls.some(({ callId }) => callId === "pure"));
    expect(await failureOf(calls.cancelToolCall({ callId: "pure" }, as("mallory")))).toMatchObject(notOwner);
    expect(suite.mcp.canceled).not.toContain("pure");
    expect((await calls.cancelToolCall({ callId: "pure" }, as("alice"))).started).toBe(true);
    expect((await calling).isError).toBe(true);
  });

  test("SEC-2 ids of the suite's own runs and keys are not chosen from outside, where others could take them before", async () => {
    const { sessions, router, call } = suite.clients;
    const mallory = as("mallory");
    await sessions.createSession({ agent: "reader", sessionId: "mallorys-own" }, mallory);
    const callId = `run_${"0".repeat(21)}_call_2_1`;
    const request = { sessionId: "mallorys-own", name: "read", argumentsJson: '{"path":"a"}', callId };
    const calling = Array.fromAsync(router.callTool(request, mallory));
    expect(await failureOf(calling)).toMatchObject({
      code: "invalid_argument",
      fieldViolations: [{ field: "call_id" }],
    });
    for (const sessionId of [`key_${"0".repeat(40)}`, `sub_${"0".repeat(40)}`]) {
      const opening = sessions.createSession({ agent: "reader", sessionId }, mallory);
      expect(await failureOf(opening)).toMatchObject({ code: "not_found", reason: "SESSION_NOT_FOUND" });
      const service = asCaller({ service: "orchestrator", principal: "alice", isOperator: false });
      expect((await sessions.createSession({ agent: "reader", sessionId }, service)).session?.id).toBe(sessionId);
      const again = await sessions.createSession({ agent: "reader", sessionId }, as("alice"));
      expect(again.session?.id, "whose it is may name it").toBe(sessionId);
    }
    suite.mcp.answer = async function* () {
      yield { event: { case: "result", value: { outputJson: '"read"' } } };
    };
    expect((await call({ ...request, sessionId })).output).toBe("read");
  });

  test("LOOP-15 a call that has not begun is canceled for who cancels it, and for nobody else", async () => {
    const { calls } = suite.clients;
    suite.mcp.answer = async function* () {
      yield { event: { case: "result", value: { outputJson: '"read"' } } };
    };
    suite.spaces.activeSpaces.set(sessionId, "room");
    const read = { sessionId, name: "read", argumentsJson: '{"path":"a"}' };
    const ask = { sessionId, name: "ask", argumentsJson: "{}" };
    for (const callId of ["early-read", "early-ask"])
      await calls.cancelToolCall({ callId, reason: "!" }, as("mallory"));
    expect((await suite.clients.call({ ...read, callId: "early-read" })).output).toBe("read");
    const asking = suite.clients.call({ ...ask, callId: "early-ask", recovering: true });
    await until(() => suite.spaces.messages.some(({ callId }) => callId === "early-ask"));
    await calls.submitToolResult(
      { callId: "early-ask", outcome: { case: "resultJson", value: '"asked"' } },
      as("alice"),
    );
    expect((await asking).output).toBe("asked");

    for (const principal of ["mallory", "alice"]) await calls.cancelToolCall({ callId: "both" }, as(principal));
    for (const name of [read, ask]) {
      expect((await suite.clients.call({ ...name, callId: "both" })).output).toEqual({
        error: "the call was canceled",
      });
    }
  });

  test("TOOL-7 a call that nobody has taken is answered by its owner and by who watches for it, not by who knows its id", async () => {
    const { calls } = suite.clients;
    const { call } = suite.clients;
    for (const callId of ["w1", "w2", "w3"]) await call({ sessionId: "weighed", name: "weigh", callId });
    const submit = (callId: string, by: string) =>
      calls.submitToolResult({ callId, outcome: { case: "resultJson", value: "1" } }, as(by));
    expect(await failureOf(submit("w1", "mallory"))).toMatchObject({
      code: "permission_denied",
      reason: "CALL_NOT_TAKEN",
      message: expect.stringContaining("acknowledge its delivery first, or answer while you watch for calls of weigh"),
    });
    expect((await submit("w1", "alice")).call?.result?.outputJson).toBe("1");
    await using scales = new ExternalService(calls, { tools: ["weigh"] }, neither, as("scales"));
    await until(() => scales.callIds.includes("w2") && scales.callIds.includes("w3"), { timeoutMs: 20_000 });
    expect((await submit("w2", "scales")).call?.result?.outputJson).toBe("1");
    expect((await failureOf(submit("w3", "mallory")))?.reason).toBe("CALL_NOT_TAKEN");
    const handed = scales.handed.find((one) => one.call?.callId === "w3");
    const delivery = { callId: "w3", deliveryId: handed?.deliveryId ?? "" };
    await calls.acknowledgeToolCall(delivery, as("scales"));
    await scales[Symbol.asyncDispose]();
    expect((await failureOf(submit("w3", "mallory")))?.reason).toBe("CALL_TAKEN");
    expect((await submit("w3", "scales")).call?.result?.outputJson).toBe("1");
  });

  test("SEC-6 what a stranger submits for a call that a watcher has taken is neither checked nor kept", async () => {
    const { calls, call } = suite.clients;
    await using scales = new ExternalService(calls, { tools: ["weigh"] }, neither, as("scales"));
    await call({ sessionId: "weighed", name: "weigh", callId: "taken" });
    const { deliveryId } = await until(() => scales.handed.find((one) => one.call?.callId === "taken"));
    await calls.acknowledgeToolCall({ callId: "taken", deliveryId }, as("scales"));
    const value = JSON.stringify("x".repeat(300_000));
    const submitting = calls.submitToolResult(
      { callId: "taken", outcome: { case: "resultJson", value } },
      as("mallory"),
    );
    expect((await failureOf(submitting))?.reason).toBe("CALL_TAKEN");
    const reference = `weighed.sha256-${createHash("sha256").update(value).digest("hex")}`;
    expect(await createResultStore(suite.bus).find(reference)).toBeUndefined();
  });

  test("SEC-2 nobody takes a call by an id that was made up, of an approval in a space neither", async () => {
    const { calls, call } = suite.clients;
    await call({ sessionId: "weighed", name: "weigh", callId: "aimed-at" });
    suite.spaces.activeSpaces.set(sessionId, "room");
    const asking = call({ sessionId, name: "ask", argumentsJson: '{"q":1}', callId: "approval" });
    await until(() => suite.spaces.messages.some(({ callId }) => callId === "approval"));
    for (const callId of ["aimed-at", "approval"]) {
      const stem = "watcher.made-up";
      const seal = createHash("sha256").update(`${stem} ${callId}`).digest("hex");
      for (const deliveryId of [`${stem}-${seal.slice(0, 16)}`, `${stem}-${seal}`, stem]) {
        const taking = calls.acknowledgeToolCall({ callId, deliveryId }, as("mallory"));
        expect((await failureOf(taking))?.reason).toBe("DELIVERY_NOT_FOUND");
      }
      expect(await failureOf(calls.getToolCall({ callId }, as("mallory")))).toMatchObject(notOwner);
      const answer = { callId, outcome: { case: "resultJson", value: '"yes"' } as const };
      expect((await failureOf(calls.submitToolResult(answer, as("mallory"))))?.code).toBe("permission_denied");
      await calls.submitToolResult(answer, as("alice"));
    }
    expect((await asking).output).toBe("yes");
  });

  test("SEC-2 a delivery is for the principal that it went to, and tells nobody else of its call", async () => {
    const { calls, call } = suite.clients;
    await using scales = new ExternalService(calls, { tools: ["weigh"] }, neither, as("scales"));
    await call({ sessionId: "weighed", name: "weigh", callId: "delivered" });
    const handed = await until(() => scales.handed.find((one) => one.call?.callId === "delivered"));
    const delivery = { callId: "delivered", deliveryId: handed.deliveryId };
    const taking = () => calls.acknowledgeToolCall(delivery, as("mallory"));
    expect((await failureOf(taking()))?.reason).toBe("DELIVERY_NOT_FOUND");
    expect((await calls.acknowledgeToolCall(delivery, as("scales"))).call?.callId).toBe("delivered");
    expect((await failureOf(taking()))?.reason).toBe("CALL_TAKEN");
    expect((await calls.acknowledgeToolCall(delivery, as("scales"))).call?.callId).toBe("delivered");
  });

  test("ORCH-11 the audit trail of a session is for its owner, the whole for operators", async () => {
    const { audit, call } = { ...suite.clients };
    await call({ sessionId, name: "echo", callId: "audited" });
    await call({ sessionId: await suite.openSession(), name: "echo", callId: "others" });
    const callsSeenBy = async (by: Parameters<typeof audit.listAuditEvents>[1]) => {
      const { events } = await audit.listAuditEvents({ pageSize: 1_000 }, by);
      return ["audited", "others"].filter((callId) => events.some((event) => event.callId === callId));
    };
    await until(async () => (await callsSeenBy(asOperator("olga"))).length === 2);
    expect(await callsSeenBy(undefined)).toEqual(["audited", "others"]);
    expect(await callsSeenBy(asOperator("olga"))).toEqual(["audited", "others"]);
    expect(await callsSeenBy(as("alice"))).toEqual(["audited"]);
    expect(await callsSeenBy(as("mallory"))).toEqual([]);
    const filter = { sessionId };
    expect(await failureOf(audit.listAuditEvents({ filter }, as("mallory")))).toMatchObject(notOwner);
    expect((await audit.listAuditEvents({ filter }, as("alice"))).events.length).toBeGreaterThan(0);
    for await (const { update } of audit.watchAuditEvents({ fromSequence: 0n }, as("alice"))) {
      const event = update.case === "event" ? update.value : undefined;
      expect(event?.sessionId).toMatch(/^(alices|weighed)$/);
      if (event?.callId === "audited") break;
    }
  });

  test("SEC-6 a principal whose sessions take the most opens no more while room is short, and others do", async () => {
    const { sessions } = suite.clients;
    const open = (principal: string, id: string) =>
      sessions.createSession({ agent: "reader", sessionId: id }, as(principal));
    const fill = async () => {
      for (let n = 0; n < 4_000; n += 1) await open("mallory", `many-${n}`);
    };
    expect(await failureOf(fill())).toMatchObject({
      code: "resource_exhausted",
      reason: "SHARE_EXCEEDED",
      message: expect.stringMatching(/^"mallory" has its share of KV_toolbus_sessions: \d+ bytes of sessions; close/),
    });
    await open("alice", "hers-too");
    expect((await open("mallory", "many-0")).session?.id, "one that it has").toBe("many-0");
  });
});
