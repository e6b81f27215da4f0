import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { until } from "#runtime/time/until.ts";
import { asking, openScriptedWorld, type ScriptedWorld } from "../scripted-world.ts";

let world: ScriptedWorld;
beforeAll(async () => {
  world = await openScriptedWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

describe("canceling", () => {
  test("LOOP-15 reaches the model's request and the call in flight, and nothing follows it", async () => {
    const silent = await world.start({ agent: "silent" }, "x");
    const waiting = await world.start({ agent: "waiter" }, "canceled");
    await until(() => world.router.requests.some(({ runId }) => runId === waiting.id), {
      what: "the call to be dispatched",
    });
    for (const run of [silent, waiting]) {
      const { run: canceled } = await world.runs.cancelRun({ runId: run.id, reason: "enough" });
      expect(canceled).toMatchObject({ state: RunState.CANCELED, endReason: RunEndReason.CANCELED });
    }
    await until(() => world.router.aborted.some((callId) => callId.startsWith(waiting.id)), {
      what: "the call's abort",
    });
    world.gateOf("canceled").resolve("too late");
    const events = await world.eventsOf(waiting);
    const requestedAt = events.findIndex(({ event }) => event.case === "cancelRequested");
    expect(events[requestedAt]).toMatchObject({ event: { value: { reason: "enough" } } });
    const after = events.slice(requestedAt + 1).map(({ event }) => event.case);
    expect(after.filter((kind) => kind !== "claimed")).toEqual(["ended"]); // its holder ends it, or whoever claims it next
    await expect(world.runs.cancelRun({ runId: waiting.id })).resolves.toMatchObject({
      run: { state: RunState.CANCELED },
    });
  });

  test("LOOP-15 in mid-text leaves what was shown in the record, and the session goes on from there", async () => {
    const run = await world.start({ agent: "teller" }, "upon a time ".repeat(300)); // takes far longer than to be canceled
    const shown: string[] = [];
    for await (const { update } of world.runs.watchRun({ runId: run.id, fromSequence: 0n, includeDeltas: true })) {
      if (update.case === "replaced") shown.splice(0, shown.length, update.value.text);
      if (update.case === "delta" && update.value.delta.case === "text") shown.push(update.value.delta.value);
      if (shown.length === 3) await world.runs.cancelRun({ runId: run.id });
    }
    const { outputText, items } = await world.becomes(run, RunState.CANCELED);
    expect(outputText).toBe(shown.join(""));
    expect(outputText).toMatch(/^once/);
    expect(items.at(-1)?.item.value).toMatchObject({ content: textContent(outputText), incomplete: true });
    const next = await world.start({ sessionId: run.sessionId }, "go on");
    await world.becomes(next, RunState.COMPLETED);
  });

  test("LOOP-15 a run that waits in its queue is canceled there, and the next one gets its turn", async () => {
    const [first, second, third] = await Promise.all(
      ["a", "b", "c"].map(async (name) => world.start({ sessionId: `asker-${name}` }, name, { options: asking })),
    ).then(async ([head]) => [
      head!,
      await world.start({ sessionId: "asker-a" }, "second", { options: asking }),
      await world.start({ sessionId: "asker-a" }, "third", { options: asking }),
    ]);
    await world.becomes(first!, RunState.REQUIRES_ACTION);
    await world.runs.cancelRun({ runId: second!.id });
    await world.runs.cancelRun({ runId: first!.id });
    await world.becomes(third!, RunState.REQUIRES_ACTION);
    expect(await world.becomes(second!, RunState.CANCELED)).toMatchObject({ turnCount: 0 });
  });
});
