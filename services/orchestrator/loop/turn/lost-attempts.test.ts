import { describe, expect, test } from "vitest";
import { RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";
import { usdPrice } from "#runtime/money/testing/dollars.ts";
import { until } from "#runtime/time/until.ts";
import { Superseded } from "../../log/claim.ts";
import { openRun } from "../../testing/loop-run.ts";

type Run = Awaited<ReturnType<typeof openRun>>;

const text = "once upon a time there was a run that told a long story to whoever listened to it ".repeat(4).trim();
const model = { provider: "fake", model: "m", price: usdPrice(1, 1_000) };
const open = (limits = {}) =>
  openRun({ turns: [{ text, deltaDelayMs: 10 }], agent: { model }, limits, context: { checkpointMs: 40 } });

const namesOf = (run: Run) => run.events().map(({ event }) => event.case);
const droppedOf = (run: Run) =>
  run.events().flatMap(({ event }) => (event.case === "answerDropped" ? [event.value] : []));
const sinceClaim = (run: Run) => namesOf(run).slice(namesOf(run).lastIndexOf("claimed"));

/** A process that has the run until the log has some of what its model says: what it does then is too late. */
async function workUntilKilled(run: Run, instance: string): Promise<void> {
  const before = run.events().length;
  const working = run.work(instance).catch((error: unknown) => error);
  const hasSpoken = () => run.events().length > before + 1 && sinceClaim(run).includes("textCheckpoint");
  await until(() => namesOf(run).at(-1) === "ended" || hasSpoken(), { timeoutMs: 20_000, what: "a checkpoint" });
  late.push(working);
}
let late: Promise<unknown>[] = [];

describe("LOOP-12 LOOP-13 what a model has used when its process is killed", () => {
  test("counts as far as the log has its words, before it is asked again, and once", async () => {
    const run = await open();
    await workUntilKilled(run, "killed");
    const said = (await run.view()).draft?.text.length ?? 0;
    expect(await run.work("heir")).toBe("ended");
    expect(await Promise.all(late)).toEqual([expect.any(Superseded)]);
    const dropped = droppedOf(run);
    expect(dropped).toMatchObject([{ turn: 1, attempt: 1, brokeOff: true }]);
    const { inputTokens = 0n, outputTokens = 0n, cost } = dropped[0]?.usage ?? {};
    expect(Number(outputTokens)).toBeGreaterThanOrEqual(Math.ceil(said / 4));
    expect([inputTokens > 0n, (cost?.micros ?? 0n) > 0n]).toEqual([true, true]);
    expect(sinceClaim(run).slice(0, 2)).toEqual(["claimed", "answerDropped"]);
    const { usage } = await run.view();
    expect(usage!.outputTokens).toBeGreaterThan(outputTokens);
  });

  test("ends a run whose processes are killed in each of its answers, as soon as its budget is used up", async () => {
    late = [];
    const run = await open({ maxTokens: 400n });
    for (let kills = 0; namesOf(run).at(-1) !== "ended"; kills += 1) await workUntilKilled(run, `victim-${kills}`);
    const { endReason, usage } = await run.view();
    const spent = droppedOf(run).map(({ usage: used }) => Number(used!.inputTokens + used!.outputTokens));
    expect(endReason).toBe(RunEndReason.MAX_TOKENS);
    expect(spent.length, "each attempt but the last, which was killed as well, found room left").toBeGreaterThan(1);
    expect(spent.slice(0, -1).reduce((sum, one) => sum + one, 0)).toBeLessThan(400);
    expect(Number(usage!.inputTokens + usage!.outputTokens)).toBeGreaterThanOrEqual(400);
  });

  test("is not counted again when a process that hands its run over has counted it", async () => {
    const run = await open();
    const working = run.work("stops");
    await until(() => sinceClaim(run).includes("textCheckpoint"), { timeoutMs: 20_000 });
    run.handover.abort(new Error("stops"));
    expect(await working).toBe("handed_over");
    expect(await run.work("heir", { handover: new AbortController().signal })).toBe("ended");
    expect(droppedOf(run)).toHaveLength(1);
  });
});
