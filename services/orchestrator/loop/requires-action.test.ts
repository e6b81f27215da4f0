import { describe, expect, test } from "vitest";
import { RunEndReason, RunMode, RunState, ToolChoiceMode } from "#gen/toolbus/run/v1/run_pb.ts";
import { textOfContent } from "#runtime/content/text.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { until } from "#runtime/time/until.ts";
import type { FakeTool } from "../testing/fakes/fake-router.ts";
import { double, openRun, tools } from "../testing/loop-run.ts";

const options = { functionTools: [{ name: "ask" }, { name: "tell" }] };
const json = (value: unknown) => JSON.stringify(value);
const kinds = (run: Awaited<ReturnType<typeof openRun>>) => run.events().map(({ event }) => event.case);

describe("a run that returns its calls", () => {
  const returning = { ...options, mode: RunMode.RETURN_CALLS };
  const returned = { state: RunState.COMPLETED, endReason: RunEndReason.CLIENT_CALLS };

  test("LOOP-18 ends with those of its client, once its own are done, and is not answered itself", async () => {
    const turns = [
      {
        calls: [
          { name: "double", arguments: { x: 2 } },
          { name: "ask", id: "q" },
        ],
      },
      { text: "never" },
    ];
    const run = await openRun({ turns, options: returning, tools });
    expect(await run.work()).toBe("ended");
    expect(await run.view()).toMatchObject(returned);
    expect(run.router.executed).toEqual(["double"]);
    await expect(run.answer("q", json("late"))).rejects.toMatchObject({ reason: "RUN_ENDED" });
  });

  test("LOOP-18 goes on where all of them were refused, and when a process dies before its end", async () => {
    const turns = [{ calls: [{ name: "unknown" }] }, { calls: [{ name: "ask", id: "q" }] }];
    const run = await openRun({ turns, options: returning });
    const { append } = run.log;
    run.log.append = async (record, position) => {
      if (record.event.event.case === "ended") throw new Error("killed");
      return append(record, position);
    };
    await expect(run.work()).rejects.toThrow("killed");
    run.log.append = append;
    expect(await run.work("second")).toBe("ended");
    expect(await run.view()).toMatchObject({ ...returned, turnCount: 2 });
  });
});

describe("a run that needs its client", () => {
  test("LOOP-5 LOOP-16 goes on with outputs that come days later, on another process, and no time of its own has passed", async () => {
    const clock = createManualClock(1_000);
    const turns = [{ text: "Who?", calls: [{ name: "ask", id: "q" }] }, { text: "Hello {{result.0}}" }];
    const run = await openRun({ turns, options, context: { clock } });
    expect(await run.work()).toBe("parked");
    await clock.advance(10 * 24 * 3_600_000);
    await run.answer("q", json("Ada"));
    expect(await run.work("a process of another week")).toBe("ended");
    expect(await run.view()).toMatchObject({ state: RunState.COMPLETED, outputText: "Hello Ada" });
  });

  test("LOOP-5 does not park for outputs that came while its own calls ran", async () => {
    const gate = Promise.withResolvers<number>();
    const slow: FakeTool = { name: "slow", answer: () => gate.promise };
    const turns = [{ calls: [{ name: "slow" }, { name: "ask", id: "q" }] }, { text: "{{result.ask}} {{result.slow}}" }];
    const run = await openRun({ turns, options, tools: [slow] });
    const working = run.work();
    await until(() => run.router.running === 1, { what: "the slow call" });
    await run.answer("q", json("early"));
    gate.resolve(7);
    expect(await working).toBe("ended");
    expect(await run.view()).toMatchObject({ outputText: "early 7" });
    expect(kinds(run)).not.toContain("parked");
  });

  test("LOOP-5 whose outputs come in parts parks once, and is taken up when the last one is there", async () => {
    const turns = [
      {
        calls: [
          { name: "ask", id: "1" },
          { name: "tell", id: "2" },
          { name: "ask", id: "3" },
        ],
      },
      { text: "{{result.0}}{{result.1}}{{result.2}}" },
    ];
    const run = await openRun({ turns, options });
    expect(await run.work()).toBe("parked");
    for (const callId of ["3", "1"]) await run.answer(callId, json(callId));
    expect((await run.view()).requiredCalls.map(({ callId }) => callId)).toEqual(["2"]);
    expect(await run.work("woken too early")).toBe("parked");
    await run.answer("2", json("2"));
    expect(await run.work()).toBe("ended");
    expect(await run.view()).toMatchObject({ outputText: "123" });
  });

  test("LOOP-5 of many clients that answer at once each call has one winner, and the others are told", async () => {
    const turns = [
      {
        calls: [
          { name: "ask", id: "a" },
          { name: "tell", id: "b" },
        ],
      },
      { text: "{{result.0}}{{result.1}}" },
    ];
    const run = await openRun({ turns, options });
    await run.work();
    const attempts = ["a", "b"].flatMap((callId) => [1, 2, 3, 4].map((client) => run.answer(callId, json(client))));
    const outcomes = await Promise.allSettled(attempts);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    const losers = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [String(outcome.reason)] : []));
    expect(losers.every((reason) => /has its answer already/.test(reason))).toBe(true);
    expect(kinds(run).filter((kind) => kind === "callFinished")).toHaveLength(2);
    expect(await run.work()).toBe("ended");
  });

  test("LOOP-5 an error of the client is data for the model, and its text beside the calls is kept", async () => {
    const turns = [{ text: "A moment.", calls: [{ name: "ask", id: "q" }] }, { text: "{{result.0.error}}" }];
    const run = await openRun({ turns, options });
    await run.work();
    await run.answer("q", "away", "error");
    await run.work();
    const { items, outputText } = await run.view();
    expect(outputText).toBe("away");
    expect(items.flatMap(({ item }) => (item.case === "message" ? [textOfContent(item.value.content)] : []))).toEqual([
      "go",
      "A moment.",
      "away",
    ]);
  });

  test("LOOP-5 LOOP-13 a crash between the turn and the parking repeats nothing that was done", async () => {
    const turns = [{ calls: [double(4), { name: "ask", id: "q" }] }, { text: "{{result.0}} {{result.1}}" }];
    const run = await openRun({ turns, options, tools });
    const { append } = run.log;
    run.log.append = async ({ event, ...claim }, position) => {
      if (event.event.case === "parked") throw new Error("killed");
      return append({ event, ...claim }, position);
    };
    await expect(run.work()).rejects.toThrow("killed");
    run.log.append = append;
    expect(await run.work("heir")).toBe("parked");
    expect(run.router.executed).toEqual(["double"]);
    await run.answer("q", json("yes"));
    await run.work();
    expect(await run.view()).toMatchObject({ outputText: "8 yes" });
  });

  test.each([
    ["outside allowed_tools", { allowedTools: { names: ["double"] } }, {}, ["q"]],
    ["under none", { toolChoice: { choice: { case: "mode" as const, value: ToolChoiceMode.NONE } } }, {}, ["q"]],
    ["over max_tool_calls", {}, { maxToolCalls: 1 }, ["first", "q"]],
    ["that comes twice", {}, {}, ["q", "q"]],
  ])(
    "LOOP-3 LOOP-5 has no answer of its client taken for a call %s before it is refused",
    async (_, narrowed, limits, ids) => {
      const turns = [{ calls: ids.map((id) => ({ name: "ask", id })) }, { text: "done" }];
      const run = await openRun({ turns, options: { ...options, ...narrowed }, limits });
      const { append } = run.log;
      const refusals: unknown[] = [];
      run.log.append = async ({ event, ...claim }, position) => {
        const appended = await append({ event, ...claim }, position);
        if (event.event.case === "turnCommitted" && event.event.value.turn === 1) {
          const calls = event.event.value.items.flatMap(({ item }) =>
            item.case === "functionCall" ? [item.value] : [],
          );
          const early = await run.answer(calls.at(-1)!.callId, json("early")).catch((error: unknown) => error);
          refusals.push(early);
        }
        return appended;
      };
      await run.work();
      expect(refusals).toMatchObject([{ code: "failed_precondition", reason: "CALL_NOT_AWAITED" }]);
      expect((await run.view()).requiredCalls.map(({ callId }) => callId)).toEqual(ids.slice(0, -1));
      expect((await run.results()).at(-1)?.result).toMatchObject({ isError: true });
    },
  );
});
