import { expect, test } from "vitest";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import type { FakeTool } from "../../testing/fakes/fake-router.ts";
import { openRun } from "../../testing/loop-run.ts";

const switched = { state: RunState.CANCELED, endReason: RunEndReason.AGENT_SWITCHED };

test("ORCH-1 a run whose session has been given another agent asks no model and ends as canceled", async () => {
  const run = await openRun({ turns: [{ text: "never" }] });
  run.router.agent = "other";
  expect(await run.work()).toBe("ended");
  expect(await run.view()).toMatchObject({ ...switched, turnCount: 0 });
  expect(run.asked).toEqual([]);
});

test("ORCH-1 a switch in mid-turn: calls in flight keep their results, further ones are refused, and the run ends", async () => {
  const tools: FakeTool[] = [
    {
      name: "first",
      answer: () => {
        run.router.agent = "other";
        return "done";
      },
    },
    { name: "second", answer: () => "never" },
  ];
  const options = { parallelToolCalls: false };
  const run = await openRun({ turns: [{ calls: [{ name: "first" }, { name: "second" }] }], tools, options });
  expect(await run.work()).toBe("ended");
  expect(await run.view()).toMatchObject({ ...switched, turnCount: 1 });
  expect(run.router.executed).toEqual(["first"]);
  const results = await run.results();
  expect(results.map(({ result }) => result?.isError)).toEqual([false, true]);
});

test("ORCH-1 a run that parks while its session is switched does not stay parked", async () => {
  const tools: FakeTool[] = [
    {
      name: "server",
      answer: () => {
        run.router.agent = "other";
        return "done";
      },
    },
  ];
  const run = await openRun({
    turns: [{ calls: [{ name: "server" }, { name: "client" }] }],
    tools,
    options: { functionTools: [{ name: "client" }] },
  });
  expect(await run.work()).toBe("ended");
  expect(await run.view()).toMatchObject({ ...switched, turnCount: 1 });
});
