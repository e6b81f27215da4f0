import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { createMemoryRunLog, recordsOf } from "../../testing/fakes/memory-log.ts";
import { claimRun, Superseded } from "../claim.ts";
import { createJournal, type EventBody } from "../journal.ts";
import { foldLog, isRunnable, openCalls } from "./fold.ts";
import type { LogRecord } from "./log-record.ts";
import { itemsFromState, runFromState } from "./view.ts";

const accepted: EventBody = { case: "accepted", value: { sessionId: "s", agent: "a" } };

function turn(number: number, callIds: string[]): EventBody {
  const items = callIds.map((callId) => ({
    item: { case: "functionCall" as const, value: { callId, name: "tool", argumentsJson: "{}" } },
  }));
  return { case: "turnCommitted", value: { turn: number, items } };
}

function finished(callId: string, outputJson = '"done"'): EventBody {
  return { case: "callFinished", value: { callId, result: { outputJson } } };
}

function logFrom(bodies: EventBody[]): LogRecord[] {
  return recordsOf(bodies.map((event, sequence) => create(RunEventSchema, { runId: "r", sequence, event })));
}

describe("the fold of a log", () => {
  test("LOOP-4 gives results in the order of the calls, whatever order they came in", () => {
    const bodies = [accepted, turn(1, ["a", "b", "c"]), finished("c"), finished("a"), finished("b")];
    const items = itemsFromState(foldLog(logFrom(bodies))!);
    expect(items.map(({ item }) => item.case !== undefined && "callId" in item.value && item.value.callId)).toEqual([
      "a",
      "b",
      "c",
      "a",
      "b",
      "c",
    ]);
  });

  test("keeps the first of two results of a call", () => {
    const state = foldLog(logFrom([accepted, turn(1, ["a"]), finished("a", "1"), finished("a", "2")]))!;
    expect(state.turns[0]?.resultsByCallId.get("a")?.outputJson).toBe("1");
  });

  test("LOOP-10 refuses a gap, a repetition, an event after the end, and a log that does not begin with accepted", () => {
    const ended: EventBody = { case: "ended", value: { state: RunState.COMPLETED } };
    const [first, second] = logFrom([accepted, turn(1, [])]);
    expect(() => foldLog([first!, first!])).toThrow("sequence 0 stands where 1 belongs");
    expect(() => foldLog([second!])).toThrow("sequence 1 stands where 0 belongs");
    expect(() => foldLog(logFrom([ended]))).toThrow("begins with ended");
    expect(() => foldLog(logFrom([accepted, ended, ended]))).toThrow("after the end");
  });

  test("LOOP-13 refuses an epoch that is claimed twice", () => {
    const claim: EventBody = { case: "claimed", value: {} };
    const again = logFrom([accepted, claim, claim]).map((record) => ({ ...record, epoch: 1 }));
    expect(() => foldLog(again)).toThrow("claimed a second time");
  });

  test("LOOP-1 a parked run is runnable once its time is over, though nothing came", () => {
    const deadline = timestampFromMs(5_000);
    const parked = foldLog(logFrom([accepted, turn(1, ["a"]), { case: "parked", value: { deadline } }]))!;
    expect([4_999, 5_000].map((nowMs) => isRunnable(parked, nowMs))).toEqual([false, true]);
  });

  test("a parked run is runnable when its calls are answered or it is to be canceled", () => {
    const parked = [accepted, turn(1, ["a", "b"]), { case: "parked", value: {} } as EventBody];
    expect(isRunnable(foldLog(logFrom(parked))!, 0)).toBe(false);
    expect(isRunnable(foldLog(logFrom([...parked, finished("a")]))!, 0)).toBe(false);
    expect(isRunnable(foldLog(logFrom([...parked, finished("a"), finished("b")]))!, 0)).toBe(true);
    expect(isRunnable(foldLog(logFrom([...parked, { case: "cancelRequested", value: {} }]))!, 0)).toBe(true);
  });

  test("an event of a later release changes nothing but the count", () => {
    const state = foldLog(logFrom([accepted, { case: "callStarted", value: { callId: "a" } }]))!;
    expect(state).toMatchObject({ eventCount: 2, phase: { kind: "queued" } });
  });
});

type Deed = "claim" | "turn" | "finish" | "park" | "cancel" | "end";
const deed = fc.constantFrom<Deed>("claim", "turn", "finish", "park", "cancel", "end");

describe("whoever writes", () => {
  test("LOOP-13 several processes that write at random leave a log with contiguous sequences and one terminal event", async () => {
    const step = fc.record({ process: fc.nat({ max: 2 }), deed, isFrozen: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const log = createMemoryRunLog();
        await createJournal(log, "r", systemClock).append(() => accepted);
        const processes = Array.from({ length: 3 }, (_, index) => createProcess(log, `process ${index}`));
        for (const { process, deed, isFrozen } of steps) await processes[process]!.act(deed, isFrozen);
        const events = log.events("r");
        const state = foldLog(log.records("r"))!;
        expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
        expect(events.filter(({ event }) => event.case === "ended").length).toBeLessThanOrEqual(1);
        expect(events.findIndex(({ event }) => event.case === "ended")).toSatisfy(
          (index: number) => index === -1 || index === events.length - 1,
        );
        const cancelAt = events.findIndex(({ event }) => event.case === "cancelRequested");
        const written = cancelAt < 0 ? [] : events.slice(cancelAt + 1).map(({ event }) => event.case);
        expect(written.filter((name) => name === "turnCommitted" || name === "callFinished")).toEqual([]);
        expect(runFromState(state).lastSequence).toBe(events.length - 1);
      }),
      { numRuns: 200 },
    );
  });
});

/** A process that may act on what it knew before it froze. */
function createProcess(log: ReturnType<typeof createMemoryRunLog>, instance: string) {
  const journal = createJournal(log, "r", systemClock);
  let run: Awaited<ReturnType<typeof claimRun>>;
  async function act(deed: Deed, isFrozen: boolean): Promise<void> {
    if (!isFrozen) await journal.refresh();
    try {
      if (deed === "claim") run = journal.state && (await claimRun(journal, instance));
      if (deed === "cancel") await journal.append((state) => cancelOf(state?.phase.kind));
      if (deed === "turn")
        await run?.append((state) =>
          openCalls(state).length > 0 ? undefined : turn(state.turns.length + 1, [`c${state.turns.length}`]),
        );
      if (deed === "finish") await run?.append((state) => openCalls(state).map(({ callId }) => finished(callId))[0]);
      if (deed === "park")
        await run?.append((state) => (openCalls(state).length > 0 ? { case: "parked", value: {} } : undefined));
      if (deed === "end") await run?.end(() => ({ state: RunState.COMPLETED }));
    } catch (error) {
      if (!(error instanceof Superseded)) throw error;
      run = undefined;
    }
  }
  return { act };
}

function cancelOf(phase: string | undefined): EventBody | undefined {
  return phase === undefined || phase === "ended" ? undefined : { case: "cancelRequested", value: {} };
}
