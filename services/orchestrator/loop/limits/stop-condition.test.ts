import { expect, test } from "vitest";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { openJournal } from "../../log/journal.ts";
import { foldLog } from "../../log/state/fold.ts";
import { openRun, type Setting } from "../../testing/loop-run.ts";
import { limitsFrom } from "./limits.ts";
import { stopOfLate } from "./stop-condition.ts";

/** How a run is over that is taken up after its time: its log is without its end. */
async function lateStop(
  setting: Partial<Setting>,
  work: (run: Awaited<ReturnType<typeof openRun>>) => Promise<unknown>,
) {
  const run = await openRun({ turns: [], ...setting });
  await work(run);
  const { records } = await run.log.read("r", 0);
  const state = foldLog(records.filter(({ event }) => event.event.case !== "ended"));
  return state && stopOfLate(state, limitsFrom(undefined, undefined));
}

test.each([
  ["has not answered", {}],
  ["has not read its inbox", { accepted: { input: [] } }],
])("LOOP-12 a run that %s when its time is over is incomplete", async (_, setting) => {
  const stop = await lateStop(setting, async () => {});
  expect(stop).toMatchObject({ state: RunState.INCOMPLETE, endReason: RunEndReason.DEADLINE });
});

test("LOOP-12 a run that had answered before its time was over is completed, whenever it is taken up", async () => {
  const stop = await lateStop({ turns: [{ text: "said" }] }, (run) => run.work());
  expect(stop).toMatchObject({ state: RunState.COMPLETED, endReason: RunEndReason.FINAL_ANSWER });
});

test("LOOP-15 a run that is to be canceled is canceled, whenever it is taken up", async () => {
  const stop = await lateStop({}, async (run) => {
    const journal = await openJournal(run.log, "r", systemClock);
    await journal.append(() => ({ case: "cancelRequested", value: { principal: "", reason: "" } }));
  });
  expect(stop).toMatchObject({ state: RunState.CANCELED, endReason: RunEndReason.CANCELED });
});
