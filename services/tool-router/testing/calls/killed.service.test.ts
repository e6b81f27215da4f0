import { create } from "@bufbuild/protobuf";
import { headers } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { lastOf } from "#runtime/bus/streams/append/append.ts";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import { decodeCall, encodeCall } from "../../calls/records/record/call-record.ts";
import { storedCall } from "../fakes/stored.ts";
import { answerAtOnce, ExternalService, neither, takeOnly } from "../peers/external-service.ts";
import { type ExternalTools, openExternalTools } from "../peers/external-tools.ts";
import { SteadyService } from "../peers/steady-service.ts";

const patience = { timeoutMs: 30_000 };

describe("calls whose router is killed", () => {
  let external: ExternalTools;
  let lasting: ReturnType<ExternalTools["clientsOf"]>;
  let victims = 0;
  beforeAll(async () => {
    external = await openExternalTools("lasting");
    lasting = external.clientsOf("lasting");
  });
  afterAll(() => external[Symbol.asyncDispose]());

  /** A router that can be killed, and its clients. */
  async function startVictim() {
    const name = `victim-${++victims}`;
    const { pid } = await external.startRouterProcess(name);
    return { ...external.clientsOf(name), kill: () => process.kill(pid, "SIGKILL") };
  }

  test("TOOL-5 a wait whose router was killed ends at its time all the same, and a late answer reaches the inbox", async () => {
    const sessionId = await external.openSession();
    await using service = new ExternalService(lasting.calls, { tools: ["hurry"] }, neither);
    const victim = await startVictim();
    const lost = victim.call({ sessionId, name: "hurry", callId: "forsaken" }).catch(() => "lost");
    await until(() => service.callIds.includes("forsaken"), patience);
    victim.kill();
    await external.whenRecorded("forsaken", ({ state }) => state === ToolCallState.PENDING);
    await lasting.calls.submitToolResult({ callId: "forsaken", outcome: { case: "resultJson", value: '"late"' } });
    await until(() => external.spaces.inbox.has("tr:forsaken"), patience);
    expect(external.spaces.inbox.get("tr:forsaken")?.event.value).toMatchObject({ result: { outputJson: '"late"' } });
    expect(await lost).toBe("lost");
  });

  test("TOOL-6 a call that a watcher of a killed router had not acknowledged goes to another watcher", async () => {
    const sessionId = await external.openSession();
    const victim = await startVictim();
    await using first = new ExternalService(victim.calls, { tools: ["charge"] }, neither);
    const calling = lasting.call({ sessionId, name: "charge", callId: "rescued", argumentsJson: '{"n":5}' });
    await until(() => first.callIds.includes("rescued"), patience);
    await using second = new ExternalService(lasting.calls, { tools: ["charge"] });
    victim.kill();
    expect((await calling).output).toEqual({ n: 5 });
    expect(second.callIds).toEqual(["rescued"]);
  });

  test("TOOL-6 LOOP-14 a taken call whose watcher and router are both killed ends as outcome_unknown", async () => {
    const sessionId = await external.openSession();
    const victim = await startVictim();
    await using first = new ExternalService(victim.calls, { tools: ["charge"] }, takeOnly);
    const calling = lasting.call({ sessionId, name: "charge", callId: "orphaned" });
    await external.whenRecorded("orphaned", ({ taken }) => taken);
    victim.kill();
    await using second = new ExternalService(lasting.calls, { tools: ["charge"] });
    const { output } = await calling;
    expect(output).toMatchObject({ error: expect.stringMatching(/^outcome_unknown: /) });
    expect([first.callIds, second.callIds]).toEqual([["orphaned"], []]);
  });

  test("TOOL-9 a router that dies right after a late result is stored loses nothing: the inbox is told by another", async () => {
    const sessionId = await external.openSession();
    const ids = Array.from({ length: 3 }, (_, n) => `untold-${n}`);
    for (const callId of ids) await lasting.call({ sessionId, name: "order", callId });
    const victims = await Promise.all(ids.map(() => startVictim())); // which takes most of the time
    const dying = ids.map(async (callId, n) => {
      await victims[n]!.calls.submitToolResult({ callId, outcome: { case: "resultJson", value: `"${callId}"` } });
      victims[n]!.kill(); // before it could tell
    });
    await Promise.all(dying);
    for (const callId of ids) await until(() => external.spaces.inbox.has(`tr:${callId}`), patience);
  }, 90_000);

  test("TOOL-7 a submission that a killed router took is told that it won, by another router; others are not", async () => {
    const sessionId = await external.openSession();
    await lasting.call({ sessionId, name: "order", callId: "repeated" });
    const victim = await startVictim();
    await using _ = new ExternalService(lasting.calls, { tools: ["order"] }, neither);
    const submission = { callId: "repeated", outcome: { case: "resultJson", value: '"first"' } } as const;
    const first = await victim.calls.submitToolResult({ ...submission, submissionId: "mine" });
    victim.kill();
    const again = await lasting.calls.submitToolResult({ ...submission, submissionId: "mine" });
    expect(again.call).toMatchObject({ result: first.call?.result, resolvedLate: true });
    await expect(lasting.calls.submitToolResult({ ...submission, submissionId: "theirs" })).rejects.toThrow(
      /is already resolved/,
    );
  });

  test("TOOL-8 a caller is woken although the router that stored its result died before it said so", async () => {
    const sessionId = await external.openSession();
    await using _ = new ExternalService(lasting.calls, { tools: ["charge"] }, neither);
    const calling = lasting.call({ sessionId, name: "charge", callId: "untold" });
    const { call } = await external.whenRecorded("untold", (found) => ({ call: found }));
    // what a router leaves that dies between its write and its news
    const standing = await lastOf(external.bus, "$KV.toolbus_calls.untold");
    const result = create(ToolResultSchema, { outputJson: '"silent"' });
    const record = { ...decodeCall(standing!.data), state: ToolCallState.RESOLVED, result };
    const js = external.bus.jetstream;
    const fields = headers();
    fields.set("Toolbus-Due", "notify");
    await js.publish("$KV.toolbus_calls.untold", encodeCall(record), { headers: fields });
    expect((await calling).output).toBe("silent");
    expect(call.state).toBe(ToolCallState.WAITING);
  });

  test("TOOL-6 a call whose router died before it offered it is offered by another", async () => {
    const sessionId = await external.openSession();
    const callId = "unoffered";
    const record = {
      callId,
      sessionId,
      agent: "buyer",
      tool: "order",
      argumentsJson: "{}",
      state: "TOOL_CALL_STATE_PENDING",
      executionType: "EXECUTION_TYPE_EXTERNAL",
      createTime: new Date().toISOString(),
    };
    const fields = headers();
    fields.set("Toolbus-Due", String(Date.now() + 200));
    await external.bus.jetstream.publish(`$KV.toolbus_calls.${callId}`, storedCall(record), { headers: fields });
    await using service = new ExternalService(lasting.calls, { tools: ["order"] }, answerAtOnce);
    await until(() => external.spaces.inbox.has(`tr:${callId}`), patience);
    expect(service.callIds.filter((one) => one === callId)).toHaveLength(1);
  });

  test("TOOL-6 a call whose router died before it offered it, and whose time is over when somebody looks, is offered all the same", async () => {
    const sessionId = await external.openSession();
    const callId = "unoffered-late";
    const beginning = Date.now() - 60_000;
    const record = {
      callId,
      sessionId,
      agent: "buyer",
      tool: "charge",
      argumentsJson: "{}",
      state: "TOOL_CALL_STATE_WAITING",
      executionType: "EXECUTION_TYPE_EXTERNAL",
      createTime: new Date(beginning).toISOString(),
    };
    const inside = { waitExpireTime: new Date(beginning + 20_000).toISOString() };
    const fields = headers();
    fields.set("Toolbus-Due", String(Date.now()));
    await external.bus.jetstream.publish(`$KV.toolbus_calls.${callId}`, storedCall(record, inside), {
      headers: fields,
    });
    await using service = new ExternalService(lasting.calls, { tools: ["charge"] }, answerAtOnce);
    await until(() => external.spaces.inbox.has(`tr:${callId}`), patience);
    expect(service.callIds.filter((one) => one === callId)).toHaveLength(1);
  });

  test("TOOL-6 TOOL-7 LOOP-14 routers are killed and started again under load: each call has one result, and was executed once at most", async () => {
    const sessionId = await external.openSession();
    const start = () => external.startRouterProcess("crowd");
    const crowd = [await start(), await start()];
    const clients = external.clientsOf("crowd");
    await using services = new AsyncDisposableStack();
    const watching = Array.from({ length: 4 }, (_, n) =>
      services.use(new SteadyService(clients.calls, { tools: ["charge", "weigh"], watcherId: `steady ${n}` })),
    );
    let isOver = false;
    const results = new Map<string, unknown>();
    const callUntilAnswered = async (callId: string, n: number) => {
      const request = { sessionId, name: n % 2 === 0 ? "charge" : "weigh", callId, argumentsJson: `{"n":${n}}` };
      for (let recovering = false; ; recovering = true) {
        const answer = await clients.call({ ...request, recovering }).catch(() => undefined);
        if (answer !== undefined) return void results.set(callId, answer.output);
        await delay(20);
      }
    };
    let next = 0;
    const caller = async () => {
      while (!isOver) {
        const n = next++;
        await callUntilAnswered(`stormy-${n}`, n);
      }
    };
    const calling = Array.from({ length: 8 }, caller);
    for (let kill = 0; kill < 3; kill++) {
      const before = results.size;
      await until(() => results.size > before + 20, patience);
      process.kill(crowd[kill % 2]!.pid, "SIGKILL");
      crowd[kill % 2] = await start();
    }
    isOver = true;
    await Promise.all(calling);
    const executed = watching.flatMap((one) => one.executed);
    const charged = executed.filter((callId) => Number(callId.split("-")[1]) % 2 === 0);
    expect(charged).toHaveLength(new Set(charged).size); // what must not happen twice did not
    const wrong = [...results].filter(([callId, output]) => {
      const isResult = JSON.stringify(output) === `{"n":${callId.split("-")[1]}}`;
      const saysWhy = /outcome_unknown|no watcher|timed out|unavailable/.test(JSON.stringify(output));
      return !isResult && !saysWhy;
    });
    expect(wrong).toEqual([]);
    const answered = [...results.values()].filter((output) => !JSON.stringify(output).includes("error"));
    expect(answered.length / results.size).toBeGreaterThan(0.97);
    for (const callId of results.keys()) {
      const { call } = await lasting.calls.getToolCall({ callId });
      expect(call?.result?.outputJson).toBe(JSON.stringify(results.get(callId)));
    }
  }, 180_000);

  test("BUS-4 TOOL-8 the bus is killed and started again under load: each call has its result", async () => {
    const sessionId = await external.openSession();
    await using service = new SteadyService(lasting.calls, { tools: ["charge"], watcherId: "through the storm" });
    const answers: unknown[] = [];
    const callUntilAnswered = async (n: number) => {
      const request = { sessionId, name: "charge", callId: `bus-${n}`, argumentsJson: `{"n":${n}}` };
      for (let recovering = false; ; recovering = true) {
        const answer = await lasting.call({ ...request, recovering }).catch(() => undefined);
        if (answer !== undefined) return answers.push(answer.output);
        await delay(20);
      }
    };
    for (let round = 0; round < 2; round++) {
      const calling = Array.from({ length: 30 }, (_, n) => callUntilAnswered(round * 30 + n));
      await until(() => answers.length > round * 30, patience);
      await external.bus.server.kill();
      await external.bus.server.restart();
      await Promise.all(calling);
    }
    const failed = answers.filter((output) => !/^\{"n":\d+\}$|outcome_unknown/.test(JSON.stringify(output)));
    expect(failed).toEqual([]);
    expect(new Set(service.executed).size).toBe(service.executed.length);
  }, 120_000);
});
