import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { until } from "#runtime/time/until.ts";
import { asPrincipal } from "../../../../test/harness/callers.ts";
import { answerAtOnce, ExternalService, neither, takeAndAnswer, takeOnly } from "../peers/external-service.ts";
import { type ExternalTools, openExternalTools } from "../peers/external-tools.ts";

const patience = { timeoutMs: 20_000 };

describe("calls that services outside watch for, callers and watchers on different routers", () => {
  let external: ExternalTools;
  let callers: ReturnType<ExternalTools["clientsOf"]>;
  let watchers: ReturnType<ExternalTools["clientsOf"]>;
  beforeAll(async () => {
    external = await openExternalTools("callers", "watchers");
    callers = external.clientsOf("callers");
    watchers = external.clientsOf("watchers");
  });
  afterAll(() => external[Symbol.asyncDispose]());

  test("TOOL-6 TOOL-8 each of many calls goes to exactly one of three watchers, and no instant answer is missed", async () => {
    const sessionId = await external.openSession();
    await using services = new AsyncDisposableStack();
    const watching = [callers, watchers, watchers].map(({ calls }, n) =>
      services.use(new ExternalService(calls, { tools: ["weigh"], watcherId: `one of three ${n}` }, answerAtOnce)),
    );
    const ids = Array.from({ length: 300 }, (_, n) => `weighed-${n}`);
    const outputs: unknown[] = [];
    for (let from = 0; from < ids.length; from += 30) {
      const calling = ids
        .slice(from, from + 30)
        .map((callId, n) => callers.call({ sessionId, name: "weigh", callId, argumentsJson: `{"n":${from + n}}` }));
      outputs.push(...(await Promise.all(calling)).map(({ output }) => output));
    }
    expect(outputs).toEqual(ids.map((_, n) => ({ n }))); // one that was missed would have timed out
    expect(watching.flatMap(({ callIds }) => callIds).sort()).toEqual(ids.toSorted());
    expect(watching.every(({ callIds }) => callIds.length > 0)).toBe(true);
    expect(watching.flatMap(({ faults }) => faults)).toEqual([]);
  });

  test("TOOL-6 dispatcher-1 calls go straight to the router of a watcher that is there: next to none stands in a queue", async () => {
    const sessionId = await external.openSession();
    await using service = new ExternalService(watchers.calls, { tools: ["charge"] }, answerAtOnce);
    const offered = async () => (await external.bus.manager.streams.info("TOOLBUS_OFFERS")).state.last_seq;
    await callers.call({ sessionId, name: "charge", argumentsJson: '{"first":true}' });
    const before = await offered();
    for (let n = 0; n < 20; n++) await callers.call({ sessionId, name: "charge", argumentsJson: `{"n":${n}}` });
    expect(service.callIds).toHaveLength(21);
    expect((await offered()) - before).toBeLessThan(5); // those that took too long to be recorded
  });

  test("TOOL-6 a synchronous call that nobody watches for says so, after the grace and long before its timeout", async () => {
    const sessionId = await external.openSession();
    const startedAt = performance.now();
    const { output, isError } = await callers.call({ sessionId, name: "charge", callId: "unwatched" });
    const tookMs = performance.now() - startedAt;
    expect([output, isError]).toEqual([
      { error: 'Tool "charge" has no watcher: no service that executes it was there within 2000ms' },
      true,
    ]);
    expect(tookMs).toBeGreaterThan(1_990);
    expect(tookMs).toBeLessThan(15_000);
    await using late = new ExternalService(watchers.calls, { tools: ["charge"] });
    const { output: next } = await callers.call({ sessionId, name: "charge", argumentsJson: '{"next":1}' });
    expect(next).toEqual({ next: 1 });
    expect(late.callIds).not.toContain("unwatched"); // its caller was told that it is not executed
  });

  test("TOOL-6 a watcher that comes within the grace gets the call", async () => {
    const sessionId = await external.openSession();
    const calling = callers.call({ sessionId, name: "charge", callId: "graced", argumentsJson: '{"n":1}' });
    await until(() => callers.calls.getToolCall({ callId: "graced" }).catch(() => undefined));
    await using _ = new ExternalService(watchers.calls, { tools: ["charge"] });
    expect((await calling).output).toEqual({ n: 1 });
  });

  test("TOOL-6 TOOL-9 asynchronous calls made while nobody watched reach the next watcher; their results the inbox, once", async () => {
    const sessionId = await external.openSession();
    for (const callId of ["early-1", "early-2"]) {
      const { output } = await callers.call({ sessionId, name: "order", callId, argumentsJson: "{}" });
      expect(output).toEqual({ status: "pending", pendingToolCallId: callId });
    }
    await using next = new ExternalService(watchers.calls, { tools: ["order"] });
    await until(() => external.spaces.inbox.has("tr:early-1") && external.spaces.inbox.has("tr:early-2"), patience);
    expect(next.callIds.toSorted()).toEqual(["early-1", "early-2"]);
  });

  test("TOOL-6 what a watcher has not acknowledged goes to another at once when its stream ends", async () => {
    const sessionId = await external.openSession();
    const first = new ExternalService(watchers.calls, { tools: ["charge"] }, neither);
    const calling = callers.call({ sessionId, name: "charge", callId: "passed-on", argumentsJson: '{"n":2}' });
    await until(() => first.callIds.includes("passed-on"), patience);
    await using second = new ExternalService(callers.calls, { tools: ["charge"] });
    await first[Symbol.asyncDispose]();
    expect((await calling).output).toEqual({ n: 2 });
    expect(second.callIds).toEqual(["passed-on"]);
    expect(second.handed[0]?.deliveryId).not.toBe(first.handed[0]?.deliveryId);
  });

  test("TOOL-6 a watcher that comes back under its name gets what it had not acknowledged, and its old stream ends", async () => {
    const sessionId = await external.openSession();
    const request = { tools: ["charge"], watcherId: "returning" };
    await using old = new ExternalService(watchers.calls, request, neither);
    const calling = callers.call({ sessionId, name: "charge", callId: "again", argumentsJson: '{"n":3}' });
    await until(() => old.callIds.includes("again"), patience);
    await using back = new ExternalService(callers.calls, request);
    expect((await calling).output).toEqual({ n: 3 });
    expect(back.callIds).toEqual(["again"]);
    expect(String(await until(() => old.end))).toMatch(/this watcher has opened another stream/);
  });

  test("TOOL-6 LOOP-14 a call that a lost watcher had acknowledged ends as outcome_unknown and goes to no other", async () => {
    const sessionId = await external.openSession();
    const first = new ExternalService(watchers.calls, { tools: ["charge"] }, takeOnly);
    const calling = callers.call({ sessionId, name: "charge", callId: "taken" });
    await external.whenRecorded("taken", ({ taken }) => taken);
    await using second = new ExternalService(watchers.calls, { tools: ["charge"] });
    await first[Symbol.asyncDispose]();
    expect(await calling).toMatchObject({
      isError: true,
      output: { error: expect.stringMatching(/^outcome_unknown: /) },
    });
    expect(second.callIds).toEqual([]);
  });

  test("TOOL-6 a pure call that a lost watcher had acknowledged goes to another", async () => {
    const sessionId = await external.openSession();
    const first = new ExternalService(watchers.calls, { tools: ["weigh"] }, takeOnly);
    const calling = callers.call({ sessionId, name: "weigh", callId: "repeatable", argumentsJson: '{"n":4}' });
    await external.whenRecorded("repeatable", ({ taken }) => taken);
    await using second = new ExternalService(callers.calls, { tools: ["weigh"] });
    await first[Symbol.asyncDispose]();
    expect((await calling).output).toEqual({ n: 4 });
    expect(second.callIds).toEqual(["repeatable"]);
  });

  test("TOOL-6 a watcher whose stream breaks and comes back keeps what it has taken", async () => {
    const sessionId = await external.openSession();
    const request = { tools: ["charge"], watcherId: "kept" };
    const first = new ExternalService(watchers.calls, request, takeOnly);
    const calling = callers.call({ sessionId, name: "charge", callId: "kept" });
    await external.whenRecorded("kept", ({ taken }) => taken);
    await first[Symbol.asyncDispose]();
    await using back = new ExternalService(callers.calls, request, neither);
    await callers.calls.submitToolResult({ callId: "kept", outcome: { case: "resultJson", value: '"done"' } });
    expect((await calling).output).toBe("done");
    expect(back.callIds).toEqual([]);
  });

  test("TOOL-6 a slow watcher gets no more calls than it says it can hold, and the rest goes to others", async () => {
    const sessionId = await external.openSession();
    await using slow = new ExternalService(watchers.calls, { tools: ["order"], maxInFlight: 2 }, neither);
    const ids = Array.from({ length: 8 }, (_, n) => `bounded-${n}`);
    for (const callId of ids) await callers.call({ sessionId, name: "order", callId });
    await until(() => slow.handed.length === 2, patience);
    await using quick = new ExternalService(callers.calls, { tools: ["order"] });
    await until(() => quick.callIds.length === 6, patience);
    expect(slow.handed).toHaveLength(2);
    expect([...slow.callIds, ...quick.callIds].toSorted()).toEqual(ids);
    await takeAndAnswer(watchers.calls, slow.handed[0]!);
    await callers.call({ sessionId, name: "order", callId: "bounded-more" });
    await until(() => [...slow.callIds, ...quick.callIds].includes("bounded-more"), patience);
  });

  test("TOOL-6 of two who acknowledge one call the second is told that it is too late, and the first may repeat it", async () => {
    const sessionId = await external.openSession();
    await using service = new ExternalService(watchers.calls, { tools: ["order"] }, neither);
    await callers.call({ sessionId, name: "order", callId: "claimed" });
    const { deliveryId } = await until(() => service.handed.find(({ call }) => call?.callId === "claimed"), patience);
    for (const calls of [watchers.calls, callers.calls, callers.calls]) {
      expect((await calls.acknowledgeToolCall({ callId: "claimed", deliveryId })).call?.taken).toBe(true);
    }
    const other = callers.calls.acknowledgeToolCall({ callId: "claimed", deliveryId: "other.delivery" });
    await expect(other).rejects.toThrow(/call claimed has been handed to another watcher/);
    await expect(callers.calls.acknowledgeToolCall({ callId: "nothing", deliveryId })).rejects.toThrow(
      /no call nothing/,
    );
    await callers.calls.submitToolResult({ callId: "claimed", outcome: { case: "resultJson", value: "1" } });
    const late = callers.calls.acknowledgeToolCall({ callId: "claimed", deliveryId: "other.delivery" });
    await expect(late).rejects.toThrow(/call claimed is already resolved/);
  });

  test("TOOL-6 a watcher that did not get a call cannot acknowledge it, by an invented delivery or by that of another call", async () => {
    const sessionId = await external.openSession();
    await using service = new ExternalService(watchers.calls, { tools: ["order"] }, neither);
    for (const callId of ["guarded", "neighbour"]) await callers.call({ sessionId, name: "order", callId });
    const handed = (callId: string) => service.handed.find(({ call }) => call?.callId === callId);
    const neighbour = await until(() => handed("neighbour"), patience);
    const guarded = await until(() => handed("guarded"), patience);
    for (const deliveryId of ["wrong", "a.b.c", neighbour.deliveryId]) {
      const taking = callers.calls.acknowledgeToolCall({ callId: "guarded", deliveryId });
      await expect(taking).rejects.toThrow(/call guarded was not handed over by this delivery/);
    }
    const { deliveryId } = guarded;
    expect((await callers.calls.acknowledgeToolCall({ callId: "guarded", deliveryId })).call?.taken).toBe(true);
  });

  test("TOOL-7 fifty second submissions are all refused, and a stranger's is while a watcher has the call", async () => {
    const sessionId = await external.openSession();
    const mine = asPrincipal("scales");
    await using service = new ExternalService(watchers.calls, { tools: ["weigh"] }, neither, mine);
    const calling = callers.call({ sessionId, name: "weigh", callId: "contested" });
    const { deliveryId } = await until(() => service.handed.find(({ call }) => call?.callId === "contested"), patience);
    await watchers.calls.acknowledgeToolCall({ callId: "contested", deliveryId }, mine);
    const submit = (n: number, principal: string) =>
      (n % 2 === 0 ? callers : watchers).calls.submitToolResult(
        { callId: "contested", outcome: { case: "resultJson", value: String(n) } },
        asPrincipal(principal),
      );
    await expect(submit(1, "stranger")).rejects.toThrow(/has been taken by a watcher of somebody else/);
    const submissions = await Promise.allSettled(Array.from({ length: 51 }, (_, n) => submit(n, "scales")));
    const lost = submissions.filter(({ status }) => status === "rejected");
    expect(lost).toHaveLength(50);
    for (const one of lost) expect(String(one.status === "rejected" && one.reason)).toMatch(/is already resolved/);
    expect((await calling).output).toBe(submissions.findIndex(({ status }) => status === "fulfilled"));
  });

  test("TOOL-4 TOOL-9 what a watcher answers after the timeout goes to the inbox", async () => {
    const sessionId = await external.openSession();
    await using service = new ExternalService(watchers.calls, { tools: ["hurry"] }, takeOnly);
    const { output } = await callers.call({ sessionId, name: "hurry", callId: "too-late" });
    expect(output).toEqual({ error: "Tool timed out after 1500ms" });
    expect(service.callIds).toEqual(["too-late"]);
    expect(await external.whenRecorded("too-late", ({ state }) => state)).toBe(ToolCallState.PENDING);
    await watchers.calls.submitToolResult({ callId: "too-late", outcome: { case: "resultJson", value: '"here"' } });
    const event = await until(() => external.spaces.inbox.get("tr:too-late"), patience);
    expect(event.event.value).toMatchObject({ result: { outputJson: '"here"' } });
  });
});
