import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ProvidedResultSchema } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { FakeTool } from "../../testing/fakes/fake-router.ts";
import { double, openRun, tools } from "../../testing/loop-run.ts";

const ends = create(ProvidedResultSchema, { outputJson: '{"skipped":true}', endsRun: true });
const skip: FakeTool = { name: "skip", tool: { executionType: ExecutionType.BUILTIN }, answer: () => ends };

test("TOOL-12 skip ends the run completed, reason skipped, and the model is not asked again", async () => {
  const turns = [{ text: "Not for me.", calls: [{ name: "skip" }, double(2)] }, { text: "never" }];
  const run = await openRun({ turns, tools: [...tools, skip] });
  expect(await run.work()).toBe("ended");
  const { state, endReason, turnCount: taken } = await run.view();
  expect({ state, endReason, taken }).toEqual({ state: RunState.COMPLETED, endReason: RunEndReason.SKIPPED, taken: 1 });
  expect(run.router.executed).toEqual(["skip", "double"]);
});

test("TOOL-12 skip waits for no output of the client", async () => {
  const turns = [{ calls: [{ name: "ask" }, { name: "skip" }] }];
  const run = await openRun({ turns, tools: [skip], options: { functionTools: [{ name: "ask" }] } });
  expect(await run.work()).toBe("ended");
  expect(await run.view()).toMatchObject({
    state: RunState.COMPLETED,
    endReason: RunEndReason.SKIPPED,
    requiredCalls: [],
  });
});

test("TOOL-12 ORCH-2 allowed_tools does not narrow the built-ins", async () => {
  const run = await openRun({
    turns: [{ calls: [{ name: "skip" }] }],
    tools: [...tools, skip],
    options: { allowedTools: { names: ["double"] } },
  });
  await run.work();
  expect(await run.view()).toMatchObject({ endReason: RunEndReason.SKIPPED });
});

test("TOOL-12 only a built-in ends a run: neither another tool's result nor a client's output does", async () => {
  const pushy: FakeTool = { name: "pushy", tool: { executionType: ExecutionType.MCP }, answer: () => ends };
  const turns = [{ calls: [{ name: "pushy" }, { name: "ask", id: "q" }] }, { text: "still here" }];
  const run = await openRun({ turns, tools: [pushy], options: { functionTools: [{ name: "ask" }] } });
  expect(await run.work()).toBe("parked");
  await run.answer("q", '{"skipped":true}');
  expect(await run.work()).toBe("ended");
  expect(await run.view()).toMatchObject({ endReason: RunEndReason.FINAL_ANSWER, outputText: "still here" });
});

test("TOOL-12 a process that dies after the result of skip leaves the end to the next one", async () => {
  const run = await openRun({ turns: [{ calls: [{ name: "skip" }] }], tools: [skip] });
  const log = { ...run.log, append: run.log.append };
  run.log.append = async ({ event, ...claim }, position) => {
    if (event.event.case === "ended") throw new Error("killed");
    return log.append({ event, ...claim }, position);
  };
  await expect(run.work()).rejects.toThrow("killed");
  run.log.append = log.append;
  expect(await run.work("second")).toBe("ended");
  expect(await run.view()).toMatchObject({ endReason: RunEndReason.SKIPPED });
  expect(run.router.executed).toEqual(["skip"]);
});
