import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { ToolOutputSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { boundedResult } from "#runtime/results/shortened.ts";
import { SELF } from "#runtime/rpc/identity.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { createJournal, type EventBody } from "../../log/journal.ts";
import { foldLog, isRunnable } from "../../log/state/fold.ts";
import { runFromState } from "../../log/state/view.ts";
import { createMemoryRunLog } from "../../testing/fakes/memory-log.ts";
import { submitOutputs } from "./answers.ts";

/** A run that is parked for some calls of one turn. */
async function openParked(callIds: readonly string[]) {
  const log = createMemoryRunLog();
  const wakes: number[] = [];
  const stored: string[] = [];
  const store = async (whole: string) => {
    stored.push(whole);
    return `s.sha256-${createHash("sha256").update(whole).digest("hex")}`;
  };
  const options = {
    log,
    clock: systemClock,
    boundResult: (result: ToolResult) => boundedResult(result, 256 * 1_024, store),
    wakes: { send: async ({ eventCount }: { eventCount: number }) => void wakes.push(eventCount) },
  };
  const calls = callIds.map((callId) => ({ callId, name: "ask", argumentsJson: "{}" }));
  const bodies: EventBody[] = [
    { case: "accepted", value: { sessionId: "s", agent: "a", options: { functionTools: [{ name: "ask" }] } } },
    { case: "claimed", value: {} },
    {
      case: "turnCommitted",
      value: { turn: 1, items: calls.map((value) => ({ item: { case: "functionCall", value } })) },
    },
    { case: "parked", value: { calls } },
  ];
  const journal = createJournal(log, "r", systemClock);
  for (const body of bodies) await journal.append(() => body, { epoch: body.case === "claimed" ? 1 : 0 });
  const answer = (ids: readonly string[], value = "1", kind: "resultJson" | "error" = "resultJson") =>
    submitOutputs(
      options,
      "r",
      ids.map((callId) => create(ToolOutputSchema, { callId, outcome: { case: kind, value } })),
      { caller: SELF },
    );
  /** Under an id of its own, unless told. */
  const submit = (texts: Readonly<Record<string, string>>, submissionId = Object.values(texts).join().slice(0, 128)) =>
    submitOutputs(
      options,
      "r",
      Object.entries(texts).map(([callId, value]) =>
        create(ToolOutputSchema, { callId, submissionId, outcome: { case: "resultJson", value } }),
      ),
      { caller: SELF },
    );
  const answeredIds = () => callIds.filter((id) => foldLog(log.records("r"))!.turns[0]!.resultsByCallId.has(id));
  return { answer, submit, stored, answeredIds, journal, log, wakes, state: () => foldLog(log.records("r"))! };
}

describe("outputs of a client", () => {
  test("LOOP-5 LOOP-16 that come in parts wake the session once, for the last one, before it is written", async () => {
    const { answer, wakes, state } = await openParked(["a", "b", "c", "d"]);
    await answer(["a"]);
    await answer(["b", "c"]);
    expect(wakes).toEqual([]);
    expect(isRunnable(state(), 0)).toBe(false);
    await answer(["d"]);
    expect(wakes).toEqual([8]);
    expect(isRunnable(state(), 0)).toBe(true);
  });

  test("LOOP-5 of two clients at once whose outputs are the last two: the one that comes second wakes the session", async () => {
    for (let round = 0; round < 20; round += 1) {
      const { answer, wakes } = await openParked(["a", "b"]);
      await Promise.all([answer(["a"]), answer(["b"])]);
      expect(wakes.at(-1)).toBe(6);
    }
  });

  test("LOOP-5 that are all there leave a run that waits for its turn, and asks for nothing", async () => {
    const { answer } = await openParked(["a", "b"]);
    expect(runFromState(await answer(["a"]))).toMatchObject({ state: RunState.REQUIRES_ACTION });
    const answered = runFromState(await answer(["b"]));
    expect(answered.requiredCalls).toEqual([]);
    expect(answered.state).toBe(RunState.QUEUED);
  });

  test("LOOP-8 that are not JSON are refused by the call's id, none of the request is stored, and they may come again", async () => {
    const { answer, state } = await openParked(["a", "b"]);
    for (const text of ["not json", '{"half":']) {
      await expect(answer(["a", "b"], text)).rejects.toMatchObject({
        code: "invalid_argument",
        reason: "RESULT_INVALID",
        metadata: { call_id: "a" },
      });
    }
    await expect(answer(["a"], "")).rejects.toMatchObject({ code: "invalid_argument", reason: "RESULT_INVALID" });
    expect(state().eventCount).toBe(4);
    await answer(["a", "b"], "null");
    expect(state().eventCount).toBe(6);
  });

  test("KIND-4 LOOP-7 that are errors have the form of all errors, whatever their text is", async () => {
    const nested = "[".repeat(60_000);
    for (const text of ["away", '{"error":"away","code":7}', nested]) {
      const { answer, state } = await openParked(["a"]);
      await answer(["a"], text, "error");
      const outputJson = JSON.stringify({ error: text });
      expect(state().turns[0]?.resultsByCallId.get("a")).toMatchObject({ outputJson, isError: true });
    }
  });

  test("LOOP-5 of ten clients with submissions of their own one wins, and is told so however often it asks, also when the run has ended", async () => {
    const { submit, log, journal } = await openParked(["a"]);
    const race = () => Promise.allSettled(Array.from({ length: 10 }, (_, n) => submit({ a: `${n}` }, `by ${n}`)));
    const winner = (await race()).findIndex(({ status }) => status === "fulfilled");
    const again = await race();
    for (const [n, outcome] of again.entries()) {
      if (n === winner) expect(outcome.status).toBe("fulfilled");
      else expect(outcome).toMatchObject({ reason: { reason: "CALL_ALREADY_RESOLVED", metadata: { call_id: "a" } } });
    }
    expect(log.events("r")).toHaveLength(5);
    await expect(submit({ a: '"other"' }, `by ${winner}`)).rejects.toMatchObject({
      code: "already_exists",
      reason: "SUBMISSION_ID_REUSED",
      metadata: { call_id: "a" },
    });
    await expect(submit({ a: `${winner}` }, ""), "only one try can win without an id").rejects.toMatchObject({
      reason: "CALL_ALREADY_RESOLVED",
    });
    await journal.append(() => ({ case: "ended", value: { state: RunState.COMPLETED } }));
    expect((await submit({ a: `${winner}` }, `by ${winner}`)).phase.kind).toBe("ended");
  });
});

describe("outputs of one request", () => {
  test("LOOP-5 LOOP-8 over the limit are stored whole once, unless another one is refused, and told from others under their id", async () => {
    const { submit, answeredIds, stored, state } = await openParked(["a", "b"]);
    const large = JSON.stringify("x".repeat(2 ** 20));
    await expect(submit({ a: large, b: "no json" }, "by me")).rejects.toMatchObject({ reason: "RESULT_INVALID" });
    expect([answeredIds(), stored]).toEqual([[], []]);
    for (let n = 0; n < 2; n += 1) await submit({ a: large, b: "2" }, "by me");
    expect(stored).toEqual([large]);
    const { outputJson, storedReference } = state().turns[0]!.resultsByCallId.get("a")!;
    expect(JSON.parse(outputJson)).toMatchObject({ truncated: true, storedReference });
    await expect(submit({ a: large.replace("x", "y") }, "by me")).rejects.toMatchObject({
      reason: "SUBMISSION_ID_REUSED",
    });
  });

  test("LOOP-5 LOOP-13 are stored whole by a repetition after a crash between any two of them, and the session is woken", async () => {
    for (let survives = 0; survives < 3; survives += 1) {
      const { submit, answeredIds, log, wakes } = await openParked(["a", "b", "c"]);
      const { append } = log;
      let written = 0;
      log.append = async ({ event, ...claim }, position) => {
        written += 1;
        if (written > survives) throw new Error("killed");
        return append({ event, ...claim }, position);
      };
      await expect(submit({ a: "1", b: "2", c: "3" })).rejects.toThrow("killed");
      expect(answeredIds()).toHaveLength(survives);
      log.append = append;
      wakes.length = 0;
      await submit({ a: "1", b: "2", c: "3" });
      expect(answeredIds()).toEqual(["a", "b", "c"]);
      expect(wakes).toEqual([7]);
      expect(log.events("r")).toHaveLength(7);
    }
  });

  test("LOOP-5 LOOP-16 that all stand there already are taken again, and wake the session once more, as the wake-up may have been lost", async () => {
    const { submit, wakes, log, journal } = await openParked(["a", "b"]);
    await submit({ a: "1", b: "2" }, "first");
    wakes.length = 0;
    await submit({ b: "2", a: "1" }, "first");
    expect(wakes).toEqual([6]);
    expect(log.events("r")).toHaveLength(6);
    await expect(submit({ b: "2" }, "second")).rejects.toMatchObject({
      reason: "CALL_ALREADY_RESOLVED",
      metadata: { call_id: "b" },
    });
    await journal.append(() => ({ case: "ended", value: { state: RunState.COMPLETED } }));
    wakes.length = 0;
    expect((await submit({ a: "1", b: "2" }, "first")).phase.kind).toBe("ended");
    expect(wakes).toEqual([]);
    await expect(submit({ a: "1", b: "3" }, "second")).rejects.toMatchObject({ reason: "RUN_ENDED" });
  });

  test("LOOP-5 of many clients at once: those that repeat one submission all succeed, of those that differ one does and the others store nothing", async () => {
    for (let round = 0; round < 20; round += 1) {
      const same = await openParked(["a", "b", "c"]);
      await Promise.all([
        same.submit({ a: "1", b: "2", c: "3" }, "one"),
        same.submit({ c: "3", b: "2", a: "1" }, "one"),
      ]);
      expect(same.answeredIds()).toEqual(["a", "b", "c"]);
      expect(same.log.events("r")).toHaveLength(7);
      expect(same.wakes.at(-1)).toBe(7);

      const other = await openParked(["a", "b", "c"]);
      const outcomes = await Promise.allSettled([
        other.submit({ a: "1", b: "1", c: "1" }),
        other.submit({ c: "2", b: "2", a: "2" }),
        other.submit({ b: "3", c: "3", a: "3" }),
      ]);
      expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      const stored = ["a", "b", "c"].map((id) => other.state().turns[0]!.resultsByCallId.get(id)!.outputJson);
      expect(new Set(stored).size).toBe(1);
      for (const outcome of outcomes) {
        if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ reason: "CALL_ALREADY_RESOLVED" });
      }
    }
  });

  test("LOOP-5 LOOP-15 whose run is canceled in the middle end with it: the request is refused, and so is its repetition", async () => {
    const { submit, answeredIds, log, journal } = await openParked(["a", "b", "c"]);
    const { append } = log;
    log.append = async ({ event, ...claim }, position) => {
      if (event.event.case === "callFinished" && event.event.value.callId === "b") {
        log.append = append;
        await journal.append(() => ({ case: "cancelRequested", value: { principal: "ada", reason: "enough" } }));
        await journal.append(() => ({ case: "ended", value: { state: RunState.CANCELED } }));
      }
      return append({ event, ...claim }, position);
    };
    const texts = { a: "1", b: "2", c: "3" };
    for (let times = 0; times < 2; times += 1) {
      await expect(submit(texts)).rejects.toMatchObject({ code: "failed_precondition", reason: "RUN_ENDED" });
    }
    expect(answeredIds()).toEqual(["a"]);
  });
});
