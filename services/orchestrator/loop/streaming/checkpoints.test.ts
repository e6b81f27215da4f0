import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { RunEndReason, type TextCheckpoint } from "#gen/toolbus/run/v1/run_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { until } from "#runtime/time/until.ts";
import { claimRun, Superseded } from "../../log/claim.ts";
import { openJournal } from "../../log/journal.ts";
import { openRun } from "../../testing/loop-run.ts";

const words = "once upon a time there was a run that told a long story to whoever listened to it ";
const text = words.repeat(2).trim();

function checkpointsOf(events: readonly RunEvent[]): TextCheckpoint[] {
  return events.flatMap(({ event }) => (event.case === "textCheckpoint" ? [event.value] : []));
}

describe("checkpoints of a turn", () => {
  test("LOOP-10 hold what was told until then, each word once, under the claim and before the commit", async () => {
    const run = await openRun({ turns: [{ text, deltaDelayMs: 25 }], context: { checkpointMs: 100 } });
    await run.work();
    const events = run.events();
    const stored = checkpointsOf(events);
    expect(stored.length).toBeGreaterThan(1);
    let joined = "";
    let next = 0;
    for (const checkpoint of stored) {
      expect(checkpoint).toMatchObject({ turn: 1, attempt: 1, firstDelta: next });
      joined += checkpoint.text;
      next = checkpoint.deltaCount;
      const told = run.deltas.slice(0, next).map(({ delta }) => delta.value);
      expect(joined).toBe(told.join(""));
    }
    expect(text.startsWith(joined)).toBe(true);
    const names = events.map(({ event }) => event.case);
    expect(names.slice(-2)).toEqual(["turnCommitted", "ended"]);
    const checkpoints = run.log.records("r").filter(({ event }) => event.event.case === "textCheckpoint");
    expect(checkpoints.every(({ epoch }) => epoch === 1)).toBe(true);
  });

  test("LOOP-10 are not written for a turn that is over sooner, nor for one that says nothing", async () => {
    const short = await openRun({ turns: [{ text: "done" }] });
    await short.work();
    expect(checkpointsOf(short.events())).toEqual([]);
    const silent = await openRun({ turns: [{ text: "late", delayMs: 400 }], context: { checkpointMs: 20 } });
    await silent.work();
    expect(checkpointsOf(silent.events())).toEqual([]);
  });

  test("LOOP-10 never delay the stream: one is under way at a time, and the commit follows it", async () => {
    const run = await openRun({ turns: [{ text, deltaDelayMs: 5 }], context: { checkpointMs: 20 } });
    const { append } = run.log;
    const stuck = Promise.withResolvers<void>();
    let waiting = 0;
    run.log.append = async ({ event, ...claim }, position) => {
      if (event.event.case === "textCheckpoint") {
        waiting += 1;
        await stuck.promise;
      }
      return append({ event, ...claim }, position);
    };
    const working = run.work();
    const told = () => run.deltas.map(({ delta }) => delta.value).join("");
    await until(() => told() === text, { what: "all of the text to be told", timeoutMs: 20_000 });
    expect(waiting).toBe(1);
    expect(run.events().map(({ event }) => event.case)).toEqual(["accepted", "claimed"]);
    stuck.resolve();
    await working;
    expect(run.events().map(({ event }) => event.case)).toEqual([
      "accepted",
      "claimed",
      "textCheckpoint",
      "turnCommitted",
      "ended",
    ]);
  });

  test("LOOP-13 of a process that was thought dead are refused, and its request to the model ends", async () => {
    const run = await openRun({ turns: [{ text, deltaDelayMs: 200 }], context: { checkpointMs: 50 } });
    const working = run.work("frozen");
    working.catch(() => {}); // looked at below
    await until(() => run.deltas.length > 0, { what: "the first word" });
    await claimRun(await openJournal(run.log, "r", systemClock), "heir");
    await expect(working).rejects.toThrow(Superseded);
    const claims = run.events().findLastIndex(({ event }) => event.case === "claimed");
    expect(run.events().slice(claims + 1)).toEqual([]);
  });

  test("LOOP-10 a run that ends in mid-text keeps what was told as an incomplete item", async () => {
    const run = await openRun({ turns: [{ text, deltaDelayMs: 40 }], limits: { timeout: durationFromMs(300) } });
    expect(await run.work()).toBe("ended");
    const told = run.deltas.map(({ delta }) => delta.value).join("");
    const { items, outputText, endReason, draft } = await run.view();
    expect({ outputText, endReason, draft }).toEqual({
      outputText: told,
      endReason: RunEndReason.DEADLINE,
      draft: undefined,
    });
    expect(told.length).toBeGreaterThan(0);
    expect(items.at(-1)?.item).toMatchObject({
      case: "message",
      value: { content: textContent(told), incomplete: true },
    });
  });

  test("LOOP-10 are the draft of a run until its turn is committed or another process claims it", async () => {
    const run = await openRun({ turns: [{ text, deltaDelayMs: 20 }], context: { checkpointMs: 50 } });
    const working = run.work();
    const { draft } = await until(async () => ((await run.view()).draft ? run.view() : undefined), { what: "a draft" });
    if (draft !== undefined) expect(text.startsWith(draft.text)).toBe(true);
    run.handover.abort(new Error("stops"));
    expect(await working).toBe("handed_over");
    const last = (await run.view()).draft;
    expect(last?.text).toBe(
      checkpointsOf(run.events())
        .map(({ text }) => text)
        .join(""),
    );
    await claimRun(await openJournal(run.log, "r", systemClock), "heir");
    expect((await run.view()).draft).toBeUndefined();
  });
});
