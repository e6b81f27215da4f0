import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { FunctionCallOutputSchema, RunStatus } from "#gen/toolbus/run/v1/run_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { submitOutputs } from "./answers.ts";
import { foldLog, isRunnable } from "./fold.ts";
import { createJournal, type EventBody } from "./journal.ts";
import { createMemoryRunLog } from "./memory-log.fixture.ts";
import { runFromState } from "./view.ts";

/** A run that is parked for some calls of one turn. */
async function openParked(callIds: readonly string[]) {
  const log = createMemoryRunLog();
  const wakes: number[] = [];
  const options = {
    log,
    clock: systemClock,
    wakes: { send: async ({ eventCount }: { eventCount: number }) => void wakes.push(eventCount) },
  };
  const calls = callIds.map((callId) => ({ callId, name: "ask", argumentsJson: "{}" }));
  const bodies: EventBody[] = [
    { case: "accepted", value: { sessionId: "s", agent: "a", options: { functionTools: [{ name: "ask" }] } } },
    { case: "claimed", value: { epoch: 1, instance: "process" } },
    {
      case: "turnCommitted",
      value: { turn: 1, items: calls.map((value) => ({ item: { case: "functionCall", value } })) },
    },
    { case: "parked", value: { calls } },
  ];
  const journal = createJournal(log, "r", systemClock);
  for (const body of bodies) await journal.append(() => body, { epoch: body.case === "claimed" ? 1 : 0 });
  const answer = (ids: readonly string[], outputJson = "1", isError = false) =>
    submitOutputs(
      options,
      "r",
      ids.map((callId) => create(FunctionCallOutputSchema, { callId, result: { outputJson, isError } })),
    );
  return { answer, wakes, state: () => foldLog(log.events("r"))! };
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
    expect(runFromState(await answer(["a"]))).toMatchObject({ status: RunStatus.REQUIRES_ACTION });
    const answered = runFromState(await answer(["b"]));
    expect(answered.requiredCalls).toEqual([]);
    expect(answered.status).toBe(RunStatus.QUEUED);
  });

  test("LOOP-8 that are not JSON are refused by the call's id, none of the request is stored, and they may come again", async () => {
    const { answer, state } = await openParked(["a", "b"]);
    for (const text of ["not json", '{"half":', ""]) {
      await expect(answer(["a", "b"], text)).rejects.toMatchObject({
        code: "invalid_argument",
        reason: "OUTPUT_NOT_JSON",
        metadata: { call_id: "a" },
      });
    }
    expect(state().eventCount).toBe(4);
    await answer(["a", "b"], "null");
    expect(state().eventCount).toBe(6);
  });

  test.each([
    ['"away"', '{"error":"away"}'],
    ['{"error":"away","code":7}', '{"error":"away","code":7}'],
    ['{"code":7}', '{"error":"{\\"code\\":7}"}'],
  ])("KIND-4 LOOP-7 that are errors have the form of all errors: %s", async (told, kept) => {
    const { answer, state } = await openParked(["a"]);
    await answer(["a"], told, true);
    expect(state().turns[0]?.resultsByCallId.get("a")).toMatchObject({ outputJson: kept, isError: true });
  });
});
