import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SubAgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { RunBounds } from "#gen/toolbus/internal/run/v1/run_context_pb.ts";
import type { ProvidedResult } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { type Run, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { openBus } from "#runtime/bus/bus.ts";
import { encodeRunContext } from "#runtime/rpc/run-context.ts";
import { until } from "#runtime/time/until.ts";
import { clientFor } from "../../../clients.ts";
import { sessionOfCall } from "../../runs/sub-agents/called-session.ts";
import { createFakeRouter, type FakeTool } from "../fakes/fake-router.ts";
import { follow, openWorld, userItem, type World } from "../test-orchestrator.ts";

const offered = ["helper", "waiter", "deep", "failing", "missing", "boss", "greedy"];
const gate = Promise.withResolvers<string>();
const progress: string[] = [];

interface Call {
  callId: string;
  sessionId: string;
  agent: string;
  runId: string;
  tool: string;
  argumentsJson: string;
  bounds?: RunBounds | undefined;
}

let world: World;
let provider: Client<typeof ToolProviderService>;

/** As the router does it. */
async function callProvider(
  call: Call,
  signal = new AbortController().signal,
  by = provider,
): Promise<ProvidedResult | undefined> {
  const { sessionId, agent, runId, bounds, ...rest } = call;
  const scope = { sessionId, agent, runId, principal: "ada", contextRevision: 1 };
  const deadline = timestampFromMs(Date.now() + 60_000);
  for await (const { event } of by.executeTool(
    { ...rest, scope, deadline, ...(bounds && { runContext: encodeRunContext({ bounds }) }) },
    { signal },
  )) {
    if (event.case === "progress") progress.push(event.value.message);
    if (event.case === "result") return event.value;
  }
  return undefined;
}

const agentTools = offered.map(
  (name): FakeTool => ({
    name: `agent_${name}`,
    tool: { effect: Effect.IDEMPOTENT, executionType: ExecutionType.CUSTOM },
    answer: (_, signal, { callId, sessionId, runId, name: tool, argumentsJson, bounds }) =>
      callProvider({ callId, sessionId, runId, agent: "boss", tool, argumentsJson, bounds }, signal),
  }),
);
const router = createFakeRouter([
  ...agentTools,
  { name: "gate", answer: () => gate.promise },
  { name: "step", answer: () => 1 },
]);

beforeAll(async () => {
  const subAgents = offered.map((agent) => create(SubAgentSchema, { agent, description: `Does ${agent}.` }));
  const limits = { maxDepth: 2, maxTokens: 10_000n };
  world = await openWorld({ router, limits, agent: { subAgents } });
  provider = clientFor(world.bus, ToolProviderService, { process: "orchestrator" });
  await world.openOrchestrator("one");
  await world.openOrchestrator("two");
  const asks = (agent: string, input: string) => [{ name: `agent_${agent}`, arguments: { input } }];
  await world.writeScript("boss", {
    turns: [{ calls: asks("helper", "{{input}}") }, { text: "It says: {{result.0}}" }],
  });
  await world.writeScript("helper", { turns: [{ text: "one two three {{input}}" }] });
  const steps = { text: "word ".repeat(40), calls: Array(3).fill({ name: "step" }) };
  await world.writeScript("greedy", { turns: [...Array(8).fill(steps), { text: "never" }] });
  await world.writeScript("crowd", { turns: [{ calls: Array(8).fill(asks("greedy", "x")).flat() }, { text: "over" }] });
  await world.writeScript("waiter", { turns: [{ calls: [{ name: "gate" }] }, { text: "at last {{result.0}}" }] });
  await world.writeScript("impatient", { turns: [{ calls: asks("waiter", "wait") }, { text: "never" }] });
  await world.writeScript("deep", { turns: [{ calls: asks("deep", "deeper") }, { text: "{{result.0}}" }] });
  await world.writeScript("deepError", { turns: [{ calls: asks("deep", "deeper") }, { text: "{{result.0}}" }] });
  await world.writeScript("failing", { turns: [{ calls: [{ name: "nothing" }] }] });
  await world.writeScript("hopeful", { turns: [{ calls: asks("failing", "try") }, { text: "{{result.0.error}}" }] });
  await world.writeScript("lost", { turns: [{ calls: asks("missing", "try") }, { text: "{{result.0.error}}" }] });
});
afterAll(() => world[Symbol.asyncDispose]());

async function run(agent: string, text: string): Promise<Run> {
  const { run: started } = await world.runs.createRun({ agent, input: [userItem(text)] });
  await follow(world.runs, started!.id);
  return (await world.runs.getRun({ runId: started!.id })).run!;
}

const answersOf = (updates: Awaited<ReturnType<typeof follow>>) =>
  updates.flatMap((update) => {
    if (update.case !== "event" || update.value.event.case !== "turnCommitted") return [];
    const { inputTokens, outputTokens } = update.value.event.value.usage!;
    return [Number(inputTokens + outputTokens)];
  });

const childrenOf = async (parent: Run, callId = "call_1_1") =>
  (await world.runs.listRuns({ sessionId: sessionOfCall(`${parent.id}_${callId}`) })).runs;

describe("an agent that is offered to another", () => {
  test("LOOP-17 KIND-2 is a tool of the provider, only for the agent that may call it", async () => {
    const scope = { sessionId: "boss-1", agent: "boss" };
    const { tools } = await provider.getProvidedTools({ scope });
    expect(tools.map(({ tool }) => tool?.name)).toEqual(offered.map((name) => `agent_${name}`));
    expect(tools[0]?.tool).toMatchObject({ description: "Does helper.", effect: Effect.IDEMPOTENT });
    expect((await provider.getProvidedTools({ scope: { agent: "" } })).tools).toEqual([]);
    const { sources } = await provider.getProvidedTools({ scope, sources: [{ name: "x" }] });
    expect(sources).toMatchObject([{ source: "x", available: false }]);
  });

  test("LOOP-17 is called, runs in a session of its own, and what it used counts in the caller's run", async () => {
    const parent = await run("boss", "hello");
    expect(parent).toMatchObject({ state: RunState.COMPLETED, outputText: "It says: one two three hello" });
    const [child, ...others] = await childrenOf(parent);
    expect(others).toEqual([]);
    expect(child).toMatchObject({ agent: "helper", parent: { runId: parent.id, callId: "call_1_1", depth: 1 } });
    const updates = await follow(world.runs, parent.id);
    const own = updates.flatMap((update) =>
      update.case === "event" && update.value.event.case === "turnCommitted" ? [update.value.event.value.usage!] : [],
    );
    const ownTokens = own.reduce((tokens, { outputTokens }) => tokens + outputTokens, 0n);
    expect(parent.usage!.outputTokens).toBe(ownTokens + child!.usage!.outputTokens);
    expect(child!.usage!.outputTokens).toBe(4n); // a word is a token
    expect(progress).toContain("answers");
  });

  test("LOOP-17 LOOP-13 has exactly one run for a call, however often and wherever the call is made", async () => {
    const call = {
      callId: "outside_1",
      sessionId: "boss-2",
      agent: "boss",
      runId: "",
      tool: "agent_helper",
      argumentsJson: '{"input":"x"}',
    };
    const results = await Promise.all(Array.from({ length: 6 }, () => callProvider(call)));
    expect(results.map((result) => result?.outputJson)).toEqual(Array(6).fill('"one two three x"'));
    expect((await callProvider(call))?.outputJson).toBe('"one two three x"');
    expect((await world.runs.listRuns({ sessionId: sessionOfCall("outside_1") })).runs).toHaveLength(1);
  });

  test("LOOP-17 LOOP-15 is canceled with the run that called it", async () => {
    const { run: parent } = await world.runs.createRun({ agent: "impatient", input: [userItem("x")] });
    await until(async () => (await childrenOf(parent!)).length === 1, { what: "the child's run" });
    const gateRequests = () => router.requests.filter(({ name }) => name === "gate").length;
    await until(() => gateRequests() > 0, { what: "the child's call" });
    await world.runs.cancelRun({ runId: parent!.id, reason: "enough" });
    const isCanceled = async () => (await childrenOf(parent!))[0]?.state === RunState.CANCELED;
    await until(isCanceled, { what: "the child to be canceled", timeoutMs: 15_000 });
    const [child] = await childrenOf(parent!);
    expect(router.canceled).toContain(`${parent!.id}_call_1_1`);
    expect(router.canceled).toContain(`${child!.id}_call_1_1`);
  });

  test("LOOP-17 of no run goes on when whoever called falls silent, and is canceled when they leave", async () => {
    const { url, login } = world.server;
    const mute = await openBus({ url, login, name: "mute" });
    const call = {
      sessionId: "boss-3",
      agent: "boss",
      runId: "",
      tool: "agent_waiter",
      argumentsJson: '{"input":"x"}',
    };
    const child = async (callId: string) => (await world.runs.listRuns({ sessionId: sessionOfCall(callId) })).runs[0];
    const works = (callId: string) => until(async () => (await child(callId))?.turnCount === 1);
    const isCanceled = async (callId: string) => (await child(callId))?.state === RunState.CANCELED;
    const muteProvider = clientFor(mute, ToolProviderService, { process: "orchestrator" });
    const silent = callProvider({ ...call, callId: "silent_1" }, undefined, muteProvider).catch(() => "lost");
    await works("silent_1");
    await mute.connection.close();
    expect(await silent).toBe("lost");
    const leaving = new AbortController();
    const left = callProvider({ ...call, callId: "canceled_1" }, leaving.signal).catch(() => "left");
    await works("canceled_1");
    leaving.abort();
    expect(await left).toBe("left");
    await until(() => isCanceled("canceled_1"));
    await expect(until(() => isCanceled("silent_1"), { timeoutMs: 5_000 })).rejects.toThrow();
  });

  test("LOOP-17 is canceled when whoever called falls silent, and the run that called is over", async () => {
    const { url, login } = world.server;
    const mute = await openBus({ url, login, name: "mute" });
    const parent = await run("helper", "x");
    const call = { callId: `${parent.id}_silent`, sessionId: parent.sessionId, agent: "boss", runId: parent.id };
    const child = async () => (await world.runs.listRuns({ sessionId: sessionOfCall(call.callId) })).runs[0];
    const muteProvider = clientFor(mute, ToolProviderService, { process: "orchestrator" });
    const asked = { ...call, tool: "agent_waiter", argumentsJson: '{"input":"x"}' };
    const silent = callProvider(asked, undefined, muteProvider).catch(() => "lost");
    await until(async () => (await child())?.turnCount === 1);
    await mute.connection.close();
    expect(await silent).toBe("lost");
    await until(async () => (await child())?.state === RunState.CANCELED, { timeoutMs: 15_000 });
  });

  test("LOOP-17 goes on when its caller leaves without being over, and who calls again gets its result", async () => {
    const { run: parent } = await world.runs.createRun({ agent: "waiter", input: [userItem("x")] });
    const call = {
      callId: "left_1",
      sessionId: parent!.sessionId,
      agent: "boss",
      tool: "agent_waiter",
      argumentsJson: '{"input":"x"}',
    };
    const leaving = new AbortController();
    const left = callProvider({ ...call, runId: parent!.id }, leaving.signal).catch(() => "left");
    const child = async () => (await world.runs.listRuns({ sessionId: sessionOfCall("left_1") })).runs[0];
    await until(async () => (await child())?.turnCount === 1, { what: "the child to work" });
    leaving.abort();
    expect(await left).toBe("left");
    const again = callProvider({ ...call, runId: parent!.id });
    gate.resolve("open");
    expect((await again)?.outputJson).toBe('"at last open"');
    expect(await child()).toMatchObject({ state: RunState.COMPLETED });
  });

  test("LOOP-12 LOOP-17 eight times in one turn uses no more than what was left, but for an answer in flight of each", async () => {
    const limits = { maxTokens: 1_500n, maxToolCalls: 20 };
    const { run: started } = await world.runs.createRun({
      agent: "crowd",
      input: [userItem("x")],
      options: { limits },
    });
    await follow(world.runs, started!.id);
    const { run: parent } = await world.runs.getRun({ runId: started!.id });
    const children = await Promise.all(Array.from({ length: 8 }, (_, n) => childrenOf(parent!, `call_1_${n + 1}`)));
    const answers = await Promise.all(children.flat().map(async ({ id }) => answersOf(await follow(world.runs, id))));
    expect(answers).toHaveLength(8);
    const inFlight = answers.reduce((sum, usages) => sum + Math.max(...usages), 0);
    expect(answers.flat().reduce((sum, tokens) => sum + tokens, 0)).toBeLessThanOrEqual(1_500 + inFlight);
    const stepped = router.requests.filter(
      ({ name, runId }) => name === "step" && children.flat().some(({ id }) => id === runId),
    );
    expect(stepped.length + 8).toBeLessThanOrEqual(20);
    expect(stepped.length).toBeGreaterThan(0);
  });

  test("LOOP-17 calls others only as deep as the first one allows", async () => {
    const parent = await run("deep", "go");
    expect(parent.state).toBe(RunState.COMPLETED);
    expect(parent.outputText).toContain("agents may not call each other any deeper (max_depth)");
    const [child] = await childrenOf(parent);
    const [grandchild] = await childrenOf(child!);
    expect(grandchild).toMatchObject({ parent: { depth: 2 } });
    expect(await childrenOf(grandchild!)).toEqual([]);
  });

  test("LOOP-17 LOOP-7 whose run fails is an error of the call, with its reason; one that does not exist, too", async () => {
    expect((await run("hopeful", "x")).outputText).toMatch(/the agent's run ended failed \(model_error\)/);
    expect((await run("lost", "x")).outputText).toBe('there is no agent "missing"');
    await expect(
      callProvider({
        callId: "u",
        sessionId: "boss-4",
        agent: "boss",
        runId: "",
        tool: "agent_stranger",
        argumentsJson: "{}",
      }),
    ).rejects.toThrow("may call no agent_stranger");
  });
});
