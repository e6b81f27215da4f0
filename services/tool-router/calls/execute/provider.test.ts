import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { InputRequiredSchema, InputResponsesSchema } from "#gen/toolbus/provider/v1/input_pb.ts";
import {
  type ExecuteToolRequest,
  type ExecuteToolResponse,
  ExecuteToolResponseSchema,
  ScopeSchema,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { callPatience } from "#runtime/bus/link/call-patience.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { delay } from "#runtime/time/delay.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import { until } from "#runtime/time/until.ts";
import type { ProviderClient } from "../../sessions/offers/provider-client.ts";
import { ended } from "../../testing/fakes/fake-provider.ts";
import { noQuestions } from "../../testing/fakes/fake-questions.ts";
import { agent, offer, tool } from "../../testing/fakes/tools.ts";
import { createToolSet } from "../../tools/tool-set/tool-set.ts";
import type { Questions } from "./input/questions.ts";
import { decideDeadline } from "./limits/deadline.ts";
import { createProviderExecution, type ProviderCall } from "./provider.ts";

const progress = create(ExecuteToolResponseSchema, { event: { case: "progress", value: { progress: 1 } } });
const result = create(ExecuteToolResponseSchema, { event: { case: "result", value: { outputJson: '"ok"' } } });

type Attempt = (signal: AbortSignal, request: ExecuteToolRequest) => AsyncIterable<ExecuteToolResponse>;

function entryFor(effect: Effect, timeoutMs = 60, executionType?: ExecutionType, resumable = false) {
  const offered = offer("mcp", { files: [] });
  const tools = [
    {
      $typeName: "toolbus.provider.v1.OfferedTool" as const,
      resumable,
      source: "files",
      tool: tool("read", { effect, timeout: durationFromMs(timeoutMs), ...(executionType && { executionType }) }),
    },
  ];
  return createToolSet(agent({ use: ["*"] }), new Map(), [{ ...offered, tools }]).byReference.get("@files/read")!;
}

interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  readonly type?: ExecutionType;
  readonly resumable?: boolean;
  readonly begun?: ProviderCall["begun"];
  readonly questions?: Questions;
}

/** One call, whose provider makes the given attempts one after the other. */
async function call(
  effect: Effect,
  attempts: Attempt[],
  {
    signal = new AbortController().signal,
    timeoutMs = 60,
    type,
    resumable,
    begun = { kind: "unrecorded" },
    questions,
  }: CallOptions = {},
) {
  const unused = () => Promise.reject(new Error("not asked for"));
  let made = 0;
  const client: ProviderClient = {
    address: "fake",
    listTools: unused,
    watchTools: () => ({ [Symbol.asyncIterator]: () => ({ next: unused }) }),
    callTool: (request, options) => attempts[made++]!(options.signal, request),
    releaseScope: unused,
  };
  const entry = entryFor(effect, timeoutMs, type, resumable);
  if (entry.executor.kind !== "provider") throw new Error(entry.executor.kind);
  const { executor } = entry;
  const { execute } = createProviderExecution({
    ...{ ...noQuestions, records: { ...noQuestions.records, resume: async () => undefined } },
    ...(questions && { questions }),
    find: () => client,
    graceMs: () => 20,
  });
  const deadline = decideDeadline(entry, Date.now(), { deadline: undefined, isOfRun: true });
  const request = {
    callId: "c",
    entry,
    executor,
    scope: create(ScopeSchema),
    argumentsJson: "{}",
    deadline,
    runDeadline: undefined,
    begun,
    answers: { forms: false, urls: false },
    context: {},
  };
  const answer = await execute(request, { signal, emit: () => {} });
  const { executionType } = entry.tool;
  const attemptCount = questions ? expect.any(Number) : made; // answers go out on a stream of the same attempt
  expect(answer.execution).toMatchObject({ executionType, provider: "mcp", attemptCount });
  return { text: answer.outputJson, made };
}

/** Like the streams of Connect's clients, which nobody can leave by `return`. */
function withoutReturn<T>(generate: () => AsyncGenerator<T>): AsyncIterable<T> {
  const messages = generate();
  return { [Symbol.asyncIterator]: () => ({ next: () => messages.next() }) };
}

const succeeds: Attempt = async function* () {
  yield result;
};
const fails = (failure: Failure): Attempt =>
  // biome-ignore lint/correctness/useYield: a stream that fails before it brings anything
  async function* () {
    throw failure;
  };
const hangs: Attempt = async function* (signal) {
  await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
};
const lost = new Failure("unavailable", "the peer fell silent", { reason: "OUTCOME_UNKNOWN" });

describe("calls of providers", () => {
  test("LOOP-14 a lost call is repeated if its effect may be, and told as unknown if not", async () => {
    expect(await call(Effect.IDEMPOTENT, [fails(lost), succeeds])).toEqual({ text: '"ok"', made: 2 });
    expect(await call(Effect.IDEMPOTENT, [fails(lost), fails(lost)])).toEqual({
      text: '{"error":"outcome_unknown: provider \\"mcp\\": unavailable: the peer fell silent"}',
      made: 2,
    });
    expect((await call(Effect.PURE, [fails(lost), fails(lost)])).text).not.toContain("outcome_unknown");
    const { text, made } = await call(Effect.AT_MOST_ONCE, [fails(lost), succeeds]);
    expect(made).toBe(1);
    expect(text).toBe('{"error":"outcome_unknown: provider \\"mcp\\": unavailable: the peer fell silent"}');
  });

  test("LOOP-14 a lost call that may be repeated waits for the next instance to start where there was one alone", async () => {
    const nobody = new Failure("unavailable", "nobody serves it", { reason: "CALL_NOT_STARTED" });
    const starting = [fails(lost), fails(nobody), fails(nobody), succeeds];
    for (const effect of [Effect.PURE, Effect.IDEMPOTENT])
      expect(await call(effect, starting, { timeoutMs: 5_000 })).toEqual({ text: '"ok"', made: 4 });
    expect((await call(Effect.PURE, [fails(nobody), succeeds])).made).toBe(1);
  });

  test("KIND-4 a call that its provider gave up is over, and not made again without time", async () => {
    const over = new Failure("deadline_exceeded", "it did not answer", { reason: "OUTCOME_UNKNOWN" });
    const told = 'provider \\"mcp\\": deadline_exceeded: it did not answer; it had 60ms (the tool\'s time)';
    const answer = (text: string) => ({ text: `{"error":"${text}"}`, made: 1 });
    expect(await call(Effect.PURE, [fails(over)])).toEqual(answer(told));
    expect(await call(Effect.IDEMPOTENT, [fails(over)])).toEqual(answer(`outcome_unknown: ${told}`));
  });

  test("a call that was never sent, or that the provider refused, is no unknown outcome", async () => {
    const notSent = new Failure("unavailable", "nobody serves it", { reason: "CALL_NOT_STARTED" });
    expect((await call(Effect.AT_MOST_ONCE, [fails(notSent)])).text).toContain("nothing was started");
    const refusal = new Failure("not_found", "there is no such tool", { reason: "TOOL_NOT_FOUND" });
    expect((await call(Effect.AT_MOST_ONCE, [fails(refusal)])).text).toBe(
      '{"error":"provider \\"mcp\\": not_found: there is no such tool"}',
    );
  });

  test.each([
    ["unavailable", "CALL_NOT_STARTED"],
    ["unavailable", "MCP_SERVER_UNAVAILABLE"],
    ["unavailable", "WORKER_BACKED_OFF"],
    ["unavailable", "WORKER_STOPPED"],
    ["deadline_exceeded", "CALL_NOT_STARTED"],
    ["resource_exhausted", "WORKER_POOL_FULL"],
    ["failed_precondition", "WORKER_START_FAILED"],
    ["permission_denied", "TOOL_NOT_ALLOWED"],
  ] as const)("LOOP-14 a refusal before a start, %s with %s, is no unknown outcome", async (code, reason) => {
    const refusal = new Failure(code, "not now", { reason });
    const { text, made } = await call(Effect.AT_MOST_ONCE, [fails(refusal)]);
    expect([made, text]).toEqual([1, expect.not.stringContaining("outcome_unknown")]);
    expect(text).toContain("not now");
  });

  test.each([
    ["are not sent", new Failure("unavailable", "nobody serves it", { reason: "CALL_NOT_STARTED" })],
    ["are refused", new Failure("not_found", "there is no such call", { reason: "CALL_NOT_FOUND" })],
  ])("LOOP-14 a call that is held open until it is answered has begun, though the answers %s", async (_, failure) => {
    const asks: Attempt = async function* (signal) {
      yield create(ExecuteToolResponseSchema, { event: { case: "inputRequired", value: { live: true } } });
      await ended(signal);
    };
    const questions: Questions = {
      answer: async () => ({ kind: "answered", responses: create(InputResponsesSchema) }),
    };
    const { text, made } = await call(Effect.AT_MOST_ONCE, [asks, fails(failure)], { questions });
    expect([made, text]).toEqual([2, expect.stringContaining("outcome_unknown: ")]);
    expect(text).not.toContain("nothing was started");
    const again = await call(Effect.PURE, [asks, fails(failure), succeeds], { questions });
    expect(again.text).toBe('"ok"');
  });

  test("SEC-5 LOOP-14 a call that asks for too much at once has begun where it is held open", async () => {
    const requests = Array.from({ length: 101 }, (_, n) => ({ id: `${n}` }));
    const asks = (live: boolean, isMany = true): Attempt =>
      async function* (signal) {
        const value = { live, requests: isMany ? requests : [] };
        yield create(ExecuteToolResponseSchema, { event: { case: "inputRequired", value } });
        if (live) await ended(signal);
      };
    const told = "it asked for 101 answers at once, over the limit of 100";
    expect((await call(Effect.AT_MOST_ONCE, [asks(false)])).text).toBe(`{"error":"${told}"}`);
    expect((await call(Effect.AT_MOST_ONCE, [asks(true)])).text).toBe(`{"error":"outcome_unknown: ${told}"}`);
    expect((await call(Effect.PURE, [asks(true)])).text).toBe(`{"error":"${told}"}`);
    const required = create(InputRequiredSchema, { live: true, requests });
    const questions: Questions = { answer: async () => ({ kind: "required", required }) };
    const { text } = await call(Effect.AT_MOST_ONCE, [asks(true, false)], { questions });
    expect(text).toBe(`{"error":"outcome_unknown: ${told}"}`);
  });

  test("SEC-5 LOOP-14 a call that was held open has begun, however it asks for too much later", async () => {
    const asks = (live: boolean, count = 0): Attempt =>
      async function* (signal) {
        const value = { live, requests: Array.from({ length: count }, (_, n) => ({ id: `${n}` })) };
        yield create(ExecuteToolResponseSchema, { event: { case: "inputRequired", value } });
        if (live) await ended(signal);
      };
    const questions: Questions = {
      answer: async () => ({ kind: "answered", responses: create(InputResponsesSchema) }),
    };
    const textOf = async (effect: Effect, attempts: Attempt[]) => (await call(effect, attempts, { questions })).text;
    const often = "it asked for something more than 20 times";
    const ever = Array<Attempt>(20).fill(asks(true));
    expect(await textOf(Effect.AT_MOST_ONCE, ever)).toBe(`{"error":"outcome_unknown: ${often}"}`);
    expect(await textOf(Effect.PURE, ever)).toBe(`{"error":"${often}"}`);
    expect(await textOf(Effect.AT_MOST_ONCE, ever.fill(asks(false)))).toBe(`{"error":"${often}"}`);
    const many = "it asked for 101 answers at once, over the limit of 100";
    const thenMany = [asks(true), asks(false, 101)];
    expect(await textOf(Effect.AT_MOST_ONCE, thenMany)).toBe(`{"error":"outcome_unknown: ${many}"}`);
    const notSent = new Failure("unavailable", "nobody serves it", { reason: "CALL_NOT_STARTED" });
    const thenGone = await textOf(Effect.AT_MOST_ONCE, [asks(true), asks(false), fails(notSent)]);
    expect(thenGone).toContain("outcome_unknown: ");
  });

  test("LOOP-14 as many questions as an older router has suspended are asked", async () => {
    const required = create(InputRequiredSchema, { requests: Array.from({ length: 101 }, (_, n) => ({ id: `${n}` })) });
    const questions: Questions = {
      answer: async () => ({ kind: "answered", responses: create(InputResponsesSchema) }),
    };
    const begun = { kind: "begun", suspended: { required, epoch: 1 } } as const;
    expect((await call(Effect.AT_MOST_ONCE, [succeeds], { questions, begun })).text).toBe('"ok"');
  });

  test("LOOP-14 what its provider had let go of when it asked, as for a login, is started by the answer alone", async () => {
    const asks: Attempt = async function* () {
      yield create(ExecuteToolResponseSchema, { event: { case: "inputRequired", value: {} } });
    };
    const questions: Questions = {
      answer: async () => ({ kind: "answered", responses: create(InputResponsesSchema) }),
    };
    const needed = new Failure("failed_precondition", "it needs login", { reason: "MCP_LOGIN_NEEDED" });
    const { text } = await call(Effect.AT_MOST_ONCE, [asks, fails(needed)], { questions });
    expect(text).toBe('{"error":"provider \\"mcp\\": failed_precondition: it needs login"}');
  });

  test.each(["OUTCOME_UNKNOWN", "WORKER_CRASHED"] as const)(
    "LOOP-14 %s says nothing of a start, and is unknown",
    async (reason) => {
      const crash = new Failure("unavailable", "it ended", { reason });
      expect((await call(Effect.AT_MOST_ONCE, [fails(crash)])).text).toContain("outcome_unknown");
    },
  );

  test("LOOP-14 what was not started twice is no unknown outcome, and what was lost once is one", async () => {
    const refusal = new Failure("unavailable", "backed off", { reason: "WORKER_BACKED_OFF" });
    expect((await call(Effect.IDEMPOTENT, [fails(refusal), fails(refusal)])).text).toContain("nothing was started");
    expect((await call(Effect.IDEMPOTENT, [fails(lost), fails(refusal)])).text).toContain("outcome_unknown");
    expect((await call(Effect.IDEMPOTENT, [fails(refusal), fails(lost)])).text).toContain("outcome_unknown");
    expect(await call(Effect.IDEMPOTENT, [fails(refusal), succeeds])).toEqual({ text: '"ok"', made: 2 });
  });

  test("BUS-6 what was refused because the bus is away is not repeated once the call has waited as long as it may", async () => {
    const refusal = new Failure("unavailable", "the bus does not answer", { reason: "BUS_UNAVAILABLE" });
    expect(await call(Effect.PURE, [fails(refusal), succeeds])).toEqual({ text: '"ok"', made: 2 });
    const waited: Attempt = (...given) => {
      callPatience.spend(performance.now() - 6_400);
      return fails(refusal)(...given);
    };
    const told = await callPatience.run(() => call(Effect.PURE, [waited, succeeds]));
    expect(told).toEqual({ text: expect.stringContaining("the bus does not answer"), made: 1 });
  });

  describe("CTR-7 that outlive the instance which holds them", () => {
    const nobody = new Failure("unavailable", "nobody serves it", { reason: "CALL_NOT_STARTED" });
    const held = (graceMs: number) =>
      create(ExecuteToolResponseSchema, {
        event: { case: "held", value: { takeoverGrace: durationFromMs(graceMs) } },
      });
    const isHeldUntilLost = (graceMs: number): Attempt =>
      async function* () {
        yield held(graceMs);
        throw lost;
      };
    const resumes: Attempt = async function* (_, request) {
      expect(request.resumed).toBe(true);
      yield result;
    };
    const options = { timeoutMs: 10_000, resumable: true };

    test("the next one is asked for as long as the grace that was told, also while nobody serves", async () => {
      const attempts = [isHeldUntilLost(5_000), fails(nobody), fails(nobody), fails(nobody), resumes];
      expect(await call(Effect.AT_MOST_ONCE, attempts, options)).toEqual({ text: '"ok"', made: 5 });
    });

    test("without a grace it is asked for once", async () => {
      const { text, made } = await call(Effect.AT_MOST_ONCE, [fails(lost), fails(nobody)], options);
      expect([made, text]).toEqual([2, expect.stringContaining("outcome_unknown")]);
      expect(await call(Effect.AT_MOST_ONCE, [fails(lost), resumes], options)).toEqual({ text: '"ok"', made: 2 });
    });

    test("one that is lost, too, is followed by a third, whatever it has said; an answer is the end", async () => {
      const again = [isHeldUntilLost(5_000), isHeldUntilLost(5_000), fails(lost), fails(nobody), resumes];
      expect(await call(Effect.AT_MOST_ONCE, again, options)).toEqual({ text: '"ok"', made: 5 });
      const gone = new Failure("data_loss", "the answer is lost", { reason: "OUTCOME_UNKNOWN" });
      const refused = await call(Effect.AT_MOST_ONCE, [isHeldUntilLost(5_000), fails(gone)], options);
      expect(refused).toEqual({ text: expect.stringContaining("outcome_unknown"), made: 2 });
    });

    test("what a router began that is lost is asked for at once, and is unknown when its provider has it no more", async () => {
      const begun = { ...options, begun: { kind: "begun", resumed: true } } as const; // by a router that is lost
      expect(await call(Effect.AT_MOST_ONCE, [resumes], begun)).toEqual({ text: '"ok"', made: 1 });
      const late = [fails(nobody), fails(nobody), fails(nobody), resumes]; // its instance was lost with the router
      expect(await call(Effect.AT_MOST_ONCE, late, begun)).toEqual({ text: '"ok"', made: 4 });
      const undeclared = new Failure("not_found", "the caller declares no such tool", { reason: "TOOL_NOT_FOUND" });
      const { text, made } = await call(Effect.AT_MOST_ONCE, [fails(undeclared)], begun);
      expect([made, text]).toEqual([1, expect.stringContaining("outcome_unknown")]);
    });

    test("the time begins anew with each loss of one that held the call", async () => {
      const slowly: Attempt = async function* (...asked) {
        await delay(900);
        yield* isHeldUntilLost(1_000)(...asked);
      };
      expect(await call(Effect.AT_MOST_ONCE, [slowly, slowly, fails(nobody), resumes], options)).toEqual({
        text: '"ok"',
        made: 4,
      });
    });

    test("the grace, the call's own time and its cancellation end the asking", async () => {
      const nobodyComes = Array.from({ length: 100 }, () => fails(nobody));
      const short = await call(Effect.AT_MOST_ONCE, [isHeldUntilLost(100), ...nobodyComes], options);
      expect(short.text).toContain("outcome_unknown");
      const late = await call(Effect.AT_MOST_ONCE, [isHeldUntilLost(60_000), ...nobodyComes], {
        ...options,
        timeoutMs: 200,
      });
      expect(late.text).toContain("timed out after 200ms");
      const signal = AbortSignal.timeout(100);
      const left = await call(Effect.AT_MOST_ONCE, [isHeldUntilLost(60_000), ...nobodyComes], { ...options, signal });
      expect(left.text).toBe('{"error":"outcome_unknown: the call was canceled"}');
    });
  });

  test("KIND-4 a provider that hangs is given up after the tool's own time", async () => {
    expect((await call(Effect.PURE, [hangs])).text).toBe(
      '{"error":"Tool \\"@files/read\\" timed out after 60ms (the tool\'s time)"}',
    );
  });

  test("KIND-4 a provider that gives up in time is told with the time that the call was given", async () => {
    const gaveUp = new Failure("deadline_exceeded", "slow timed out", { reason: "DEADLINE_EXCEEDED" });
    expect((await call(Effect.PURE, [fails(gaveUp), fails(gaveUp)], { timeoutMs: 30_000 })).text).toBe(
      '{"error":"provider \\"mcp\\": deadline_exceeded: slow timed out; it had 30000ms (the tool\'s time)"}',
    );
  });

  test("KIND-4 a time of 30 days is not over at once", async () => {
    const slow: Attempt = async function* (signal) {
      await delay(100, signal);
      yield result;
    };
    expect((await call(Effect.PURE, [slow], { timeoutMs: 30 * 86_400_000 })).text).toBe('"ok"');
  });

  test("KIND-4 LOOP-14 a call that is repeated after progress has the time that the progress gave it", async () => {
    const told: number[] = [];
    const progressesUntilLost: Attempt = async function* (_, request) {
      told.push(msFromDuration(request.timeout)!);
      await delay(250);
      yield progress;
      throw lost;
    };
    const succeedsLate: Attempt = async function* (_, request) {
      told.push(msFromDuration(request.timeout)!);
      yield result;
    };
    const options = { timeoutMs: 300, type: ExecutionType.MCP };
    const answer = await call(Effect.IDEMPOTENT, [progressesUntilLost, succeedsLate], options);
    expect(answer).toEqual({ text: '"ok"', made: 2 });
    expect(told[1]).toBeGreaterThan(200);
  });

  test("a stream is read to its end, and cut when it goes on after its result, which waits for neither", async () => {
    const ends: string[] = [];
    const settles: Attempt = (signal) =>
      withoutReturn(async function* () {
        yield result;
        await delay(20);
        ends.push(signal.aborted ? "cut" : "by itself");
      });
    const goesOn: Attempt = (signal) =>
      withoutReturn(async function* () {
        yield result;
        await ended(signal);
        ends.push("cut");
      });
    expect((await call(Effect.PURE, [settles])).text).toBe('"ok"');
    expect((await call(Effect.PURE, [goesOn])).text).toBe('"ok"');
    expect(ends).toEqual([]);
    await until(() => ends.length === 2);
    expect(ends).toEqual(["by itself", "cut"]);
  });

  test("a stream that ends without a result is no success", async () => {
    const ends: Attempt = async function* () {};
    expect((await call(Effect.AT_MOST_ONCE, [ends])).text).toContain("the call ended without a result");
  });

  test("LOOP-15 canceling ends the call", async () => {
    const controller = new AbortController();
    const calling = call(Effect.AT_MOST_ONCE, [hangs], { signal: controller.signal });
    controller.abort(new Error("enough"));
    expect((await calling).text).toBe('{"error":"outcome_unknown: the call was canceled"}');
  });
});

test("KIND-4 the tool's own time wins, and the run's deadline caps it", () => {
  const entry = entryFor(Effect.PURE);
  const ofRun = (deadline?: number) => decideDeadline(entry, 1_000, { deadline, isOfRun: true });
  expect(ofRun()).toMatchObject({ at: 1_060, timeoutMs: 60, of: "the tool's" });
  expect(ofRun(1_010)).toMatchObject({ at: 1_010, timeoutMs: 10, of: "the run's" });
  const own = (provider: string) => {
    const offers = [offer(provider, { "": ["x"] }, { declared: new Map() })];
    const found = createToolSet(agent({ use: ["x"] }), new Map(), offers).byReference.get("x")!;
    const entry = { ...found, tool: { ...found.tool, executionType: ExecutionType.WORKER } };
    return decideDeadline(entry, 0, { deadline: undefined, isOfRun: true }).timeoutMs;
  };
  expect([own("caller"), own("worker")]).toEqual([60_000, 30_000]);
});

test("KIND-4 a person has as long as the run, unless the tool says how long", () => {
  const entryOf = (timeoutMs?: number) => ({
    ...entryFor(Effect.AT_MOST_ONCE),
    tool: tool("confirm", {
      executionType: ExecutionType.SPACE,
      ...(timeoutMs !== undefined && { timeout: durationFromMs(timeoutMs) }),
    }),
  });
  const ofRun = (deadline?: number) => ({ deadline, isOfRun: true });
  expect(decideDeadline(entryOf(), 0, ofRun(3_600_000))).toMatchObject({ timeoutMs: 3_600_000, of: "the run's" });
  expect(decideDeadline(entryOf(), 0, ofRun())).toMatchObject({ timeoutMs: 7 * 24 * 3_600_000 });
  expect(decideDeadline(entryOf(10_000), 0, ofRun(3_600_000))).toMatchObject({ timeoutMs: 10_000, of: "the tool's" });
  expect(decideDeadline(entryOf(), 0, { deadline: 90_000, isOfRun: false })).toMatchObject({ timeoutMs: 90_000 });
  expect(decideDeadline(entryOf(), 0, { deadline: undefined, isOfRun: false })).toMatchObject({ timeoutMs: 30_000 });
});

describe("KIND-4 the time of an MCP tool", () => {
  const entryOf = (timeoutMs?: number) => {
    const offered = tool("read", {
      executionType: ExecutionType.MCP,
      ...(timeoutMs !== undefined && { timeout: durationFromMs(timeoutMs) }),
    });
    const tools = [
      { $typeName: "toolbus.provider.v1.OfferedTool" as const, resumable: false, source: "files", tool: offered },
    ];
    const offers = [{ ...offer("mcp", { files: [] }), tools }];
    return createToolSet(agent({ use: ["*"] }), new Map(), offers).byReference.get("@files/read")!;
  };

  test("is the server's, else the request's, else 30 s, and no longer than the run's", () => {
    const alone = { deadline: undefined, isOfRun: false };
    const asked = { deadline: 300_000, isOfRun: false };
    const ofRun = { deadline: 300_000, isOfRun: true };
    expect(decideDeadline(entryOf(), 0, alone)).toMatchObject({ timeoutMs: 30_000, of: "the default" });
    expect(decideDeadline(entryOf(), 0, asked)).toMatchObject({ timeoutMs: 300_000, of: "the request's" });
    expect(decideDeadline(entryOf(), 0, ofRun)).toMatchObject({ timeoutMs: 30_000, latestAt: 300_000 });
    expect(decideDeadline(entryOf(600_000), 0, alone)).toMatchObject({ timeoutMs: 600_000, of: "the tool's" });
    expect(decideDeadline(entryOf(600_000), 0, ofRun)).toMatchObject({ timeoutMs: 300_000, of: "the run's" });
    expect(decideDeadline(entryOf(10_000), 0, asked)).toMatchObject({ timeoutMs: 10_000, latestAt: 100_000 });
  });
});
