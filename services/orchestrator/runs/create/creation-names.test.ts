import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { type ItemSchema, Role } from "#gen/toolbus/run/v1/run_pb.ts";
import {
  CreateRunRequestSchema,
  ForkRunRequestSchema,
  type InputItemSchema,
} from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionSchema, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { callerNamed } from "#runtime/rpc/identity.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { createJournal, type EventBody } from "../../log/journal.ts";
import { createFakeRouter } from "../../testing/fakes/fake-router.ts";
import { createMemoryKeys } from "../../testing/fakes/memory-keys.ts";
import { createMemoryRunLog } from "../../testing/fakes/memory-log.ts";
import { createMemoryQueues } from "../../testing/fakes/memory-queues.ts";
import { createRun } from "./creation.ts";
import { forkRun } from "./fork.ts";

const said = (text: string): MessageInitShape<typeof InputItemSchema> => ({
  item: { case: "message", value: { role: Role.USER, content: textContent(text) } },
});
const called = (callId: string): MessageInitShape<typeof ItemSchema> => ({
  item: { case: "functionCall", value: { callId, name: "look", argumentsJson: "{}" } },
});
const answered = (callId: string, value = '"forged"'): MessageInitShape<typeof InputItemSchema> => ({
  item: { case: "output", value: { callId, outcome: { case: "resultJson", value } } },
});

function openSession() {
  const log = createMemoryRunLog();
  const queues = createMemoryQueues();
  const session = create(SessionSchema, { id: "s", agent: "a", principal: "ada", state: SessionState.ACTIVE });
  const options = {
    runServers: "http" as const,
    boundResult: async (result: ToolResult) => result,
    log,
    queues,
    wakes: { send: async () => {} },
    keys: createMemoryKeys(),
    agents: { getAgent: async (name: string) => create(AgentSchema, { name, model: { contextWindow: 1_000 } }) },
    clock: systemClock,
    router: createFakeRouter([
      { name: "skip", tool: { executionType: ExecutionType.BUILTIN }, answer: () => "skipped" },
      { name: "look", answer: () => 1 },
    ]),
    sessions: { getSession: async () => session, createSession: async () => session },
  };
  const by = { signal: new AbortController().signal, principal: "ada", caller: callerNamed("ada") };
  const start = (request: MessageInitShape<typeof CreateRunRequestSchema>) =>
    createRun(options, create(CreateRunRequestSchema, { sessionId: "s", input: [said("go")], ...request }), by);
  const go = async (runId: string, bodies: EventBody[]) => {
    const journal = createJournal(log, runId, systemClock);
    for (const body of bodies) await journal.append(() => body);
  };
  const fork = (runId: string, atSequence: number, input: MessageInitShape<typeof InputItemSchema>[]) =>
    forkRun(options, create(ForkRunRequestSchema, { runId, atSequence, input }), by);
  return { start, go, fork, log };
}

describe("what a run is created with", () => {
  test("TOOL-12 a function tool of the client shadows no built-in: it is refused by its name", async () => {
    const { start } = openSession();
    await expect(start({ options: { functionTools: [{ name: "ask" }, { name: "skip" }] } })).rejects.toMatchObject({
      code: "invalid_argument",
      reason: "INVALID_REQUEST",
      message: expect.stringContaining('"skip"'),
    });
    const { accepted } = await start({ options: { functionTools: [{ name: "ask" }, { name: "look" }] } });
    expect(accepted.options?.functionTools).toHaveLength(2);
  });

  test("LOOP-5 a function tool whose name no model takes is refused, also on the bus", async () => {
    const { start } = openSession();
    await expect(start({ options: { functionTools: [{ name: "two words" }] } })).rejects.toMatchObject({
      code: "invalid_argument",
      reason: "INVALID_REQUEST",
      message: 'the function tool "two words" has a name that no model takes',
    });
  });

  test("LOOP-5 LOOP-6 input answers a call of an earlier run once: what it has been answered with stands", async () => {
    const { start, go } = openSession();
    const { runId } = await start({});
    await go(runId, [
      { case: "turnCommitted", value: { turn: 1, items: [called("done"), called("open")] } },
      { case: "callFinished", value: { callId: "done", result: { outputJson: "7" } } },
    ]);
    await expect(start({ input: [answered("done"), said("go")] })).rejects.toMatchObject({
      code: "failed_precondition",
      reason: "CALL_ALREADY_RESOLVED",
      metadata: { call_id: "done" },
    });
    await expect(start({ input: [answered("open"), answered("open", "1")] })).rejects.toMatchObject({
      reason: "CALL_ALREADY_RESOLVED",
    });
    await start({ input: [answered("open"), said("go")] });
    await expect(start({ input: [answered("open")] })).rejects.toMatchObject({ reason: "CALL_ALREADY_RESOLVED" });
    const again = { input: [answered("done", "7"), answered("open"), said("go")], idempotencyKey: "k" };
    const { runId: repeating, accepted } = await start(again); // some clients tell all again each time
    expect(
      accepted.input.map(({ item }) => item.case === "functionCallOutput" && item.value.result),
      "stands in the log once",
    ).toEqual([undefined, undefined, false]);
    expect((await start(again)).runId).toBe(repeating);
    await start({ input: [answered("done", "7"), said("go")] }); // also of what was told again
    const other = { ...again, input: [answered("open", "7"), answered("open"), said("go")] };
    await expect(start(other)).rejects.toMatchObject({ reason: "IDEMPOTENCY_KEY_REUSED" });
  });

  test("SEC-5 the call that input answers is looked for as far back as its model is shown, whatever was said before", async () => {
    const { start, go, fork, log } = openSession();
    const { runId } = await start({});
    await go(runId, [{ case: "turnCommitted", value: { turn: 1, items: [called("old")] } }]);
    for (let run = 0; run < 40; run += 1) await start({ input: [said("x".repeat(10_000))] });
    const { runId: last } = await start({});
    await go(last, [{ case: "turnCommitted", value: { turn: 1, items: [called("new")] } }]);
    await start({ input: [answered("new")], previousRunId: last });
    await expect(start({ input: [answered("old")], previousRunId: last })).rejects.toMatchObject({
      reason: "CALL_NOT_FOUND",
    });
    const { read } = log;
    const readRuns = new Set<string>();
    log.read = (id, after) => {
      readRuns.add(id);
      return read(id, after);
    };
    await expect(fork(last, 1, [answered("old")])).rejects.toMatchObject({ reason: "CALL_NOT_FOUND" });
    expect(readRuns.has(runId)).toBe(false);
  });

  test("LOOP-5 a fork's input answers calls that stand before its point, and no others", async () => {
    const { start, go, fork } = openSession();
    const { runId } = await start({});
    await go(runId, [
      { case: "turnCommitted", value: { turn: 1, items: [called("first")] } },
      { case: "callFinished", value: { callId: "first", result: { outputJson: "7" } } },
      { case: "turnCommitted", value: { turn: 2, items: [called("second")] } },
    ]);
    await expect(fork(runId, 1, [answered("second")])).rejects.toMatchObject({ reason: "CALL_NOT_FOUND" });
    await expect(fork(runId, 2, [answered("first")])).rejects.toMatchObject({ reason: "CALL_ALREADY_RESOLVED" });
    expect((await fork(runId, 1, [answered("first")])).accepted.input).toHaveLength(1);
    expect((await fork(runId, 3, [answered("second")])).accepted.input).toHaveLength(1);
  });

  test.each(["", " \n"])("LOOP-1 a message without words is refused, as providers refuse it: %j", async (text) => {
    const { start } = openSession();
    await expect(start({ input: [said("go"), said(text)] })).rejects.toMatchObject({
      code: "invalid_argument",
      reason: "INVALID_REQUEST",
      message: "input[1] holds nothing",
    });
  });
});
