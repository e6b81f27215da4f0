import { expect, test } from "vitest";
import type { RunDelta, RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { until } from "#runtime/time/until.ts";
import { claimRun, Superseded } from "../../log/claim.ts";
import { openJournal, type RunLog } from "../../log/journal.ts";
import { double, openRun } from "../../testing/loop-run.ts";
import { RunFailed } from "../errors/run-failed.ts";
import { failRun } from "../loop.ts";

const turns = [{ calls: [double(21, "a")] }, { text: "forty-two" }];

/** Lets the log take a result when it is told to, or fail with it. */
function holdResults(log: Pick<RunLog, "append">) {
  const append = log.append.bind(log);
  const held: { event: RunEvent; decide: (error?: Error) => void }[] = [];
  log.append = async ({ event, ...claim }, position) => {
    if (event.event.case === "callFinished") {
      const decided = Promise.withResolvers<void>();
      held.push({ event, decide: (error) => (error ? decided.reject(error) : decided.resolve()) });
      await decided.promise;
    }
    return append({ event, ...claim }, position);
  };
  return held;
}

function saidInTurn(deltas: readonly RunDelta[], number: number) {
  return deltas.filter(({ turn }) => turn === number).map(({ delta }) => delta.value);
}

test("LOOP-1 the model is asked with a result while the log takes it; what it says is told and stored behind it", async () => {
  const run = await openRun({ turns });
  const held = holdResults(run.log);
  const working = run.work();
  await until(() => run.asked.length === 2);
  expect(saidInTurn(run.deltas, 2)).toEqual([]);
  expect(run.events().map(({ event }) => event.case)).toEqual(["accepted", "claimed", "turnCommitted"]);
  held[0]?.decide();
  expect(await working).toBe("ended");
  expect(run.events().map(({ event }) => event.case)).toEqual([
    "accepted",
    "claimed",
    "turnCommitted",
    "callFinished",
    "turnCommitted",
    "ended",
  ]);
  expect(saidInTurn(run.deltas, 2)).toEqual(["forty-two"]);
});

test("LOOP-13 nothing follows a result that could not be stored: the next claim gets it again from the router", async () => {
  const run = await openRun({ turns });
  const held = holdResults(run.log);
  const working = run.work();
  await until(() => run.asked.length === 2);
  held[0]?.decide(new Failure("unavailable", "the bus is away", { reason: "BUS_UNAVAILABLE" }));
  await expect(working).rejects.toThrow("the bus is away");
  expect(saidInTurn(run.deltas, 2)).toEqual([]);
  expect(run.events().at(-1)?.event.case).toBe("turnCommitted");
  const again = run.work("another");
  await until(() => held.length === 2);
  held[1]?.decide();
  expect(await again).toBe("ended");
  expect((await run.results()).map(({ result }) => result?.outputJson)).toEqual(["42"]);
});

test("LOOP-15 a cancellation that comes before the result drops it, and ends what the model was asked", async () => {
  const run = await openRun({ turns });
  const held = holdResults(run.log);
  const working = run.work();
  await until(() => run.asked.length === 2);
  const journal = await openJournal(run.log, "r", systemClock);
  await journal.append(() => ({ case: "cancelRequested", value: { reason: "enough" } }));
  held[0]?.decide();
  expect(await working).toBe("ended");
  const events = run.events().map(({ event }) => event.case ?? "");
  const saidByThen = ["answerDropped", "textCheckpoint"]; // of the answer that was broken off, however far it had come
  expect(events.filter((event) => !saidByThen.includes(event))).toEqual([
    "accepted",
    "claimed",
    "turnCommitted",
    "cancelRequested",
    "ended",
  ]);
});

/** How a run ends that failed unexpectedly while the log does not take a result. */
async function failWithLost(error: Error) {
  const { log, router, toolMessages, events } = await openRun({ turns });
  const held = holdResults(log);
  const run = (await claimRun(await openJournal(log, "r", systemClock), "process"))!;
  await run.append(() => ({ case: "turnCommitted", value: { turn: 1 } }));
  await run.appendAhead(() => ({ case: "callFinished", value: { callId: "a" } }));
  held[0]?.decide(error);
  const parts = {
    router,
    toolMessages,
    clock: systemClock,
    signal: new AbortController().signal,
    onNotShown: () => {},
  };
  const failed = new RunFailed(RunEndReason.INTERNAL_ERROR, "internal error", error);
  const outcome = await failRun(run, parts, failed).catch((thrown: unknown) => thrown);
  return { outcome, last: events().at(-1)?.event.case };
}

test("LOOP-13 a run whose result the log never takes ends, and does not go round for ever", async () => {
  expect(await failWithLost(new Error("refused for good"))).toEqual({ outcome: "ended", last: "ended" });
});

test.each([
  new Failure("unavailable", "the bus is away", { reason: "BUS_UNAVAILABLE" }),
  new Superseded("another decides"),
])(
  "LOOP-13 a run that failed unexpectedly is left to the next claim when its result is lost by this: %s",
  async (error) => {
    expect(await failWithLost(error)).toEqual({ outcome: error, last: "turnCommitted" });
  },
);
