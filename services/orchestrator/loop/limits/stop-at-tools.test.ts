import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { LimitsSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { ProvidedResultSchema } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import { RunEndReason, RunMode, RunOptionsSchema, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { jsonOfBlocks } from "#runtime/results/content.ts";
import { contractValidator } from "#runtime/schema/contract/contract-validator.ts";
import { textFromResult } from "../../model/prompt/result-output.ts";
import { createFakeRouter, type FakeTool } from "../../testing/fakes/fake-router.ts";
import { double, openRun, type Setting, tools } from "../../testing/loop-run.ts";
import { createToolTable, faultsOfOptions } from "../tools/tool-table.ts";
import { limitsFrom } from "./limits.ts";

const block = (value: object, more: object = {}) => ({ blockJson: JSON.stringify(value), ...more });
const image = block({ type: "image", mimeType: "image/png" }, { storedReference: "stored", size: 3n });
const blocks = [block({ type: "text", text: "seen" }), image];
const stopped = { state: RunState.COMPLETED, endReason: RunEndReason.STOPPED_AT_TOOL };
const stopping = (setting: Setting) => openRun({ limits: { stopAtTools: ["double"] }, ...setting });

describe("LOOP-12 a run that is to stop at a tool", () => {
  test("is completed with its answer, and the model is not asked again", async () => {
    const run = await stopping({ turns: [{ text: "Let me see.", calls: [double(2)] }, { text: "never" }] });
    expect(await run.work()).toBe("ended");
    expect(await run.view()).toMatchObject({ ...stopped, outputText: "4", turnCount: 1 });
    expect(run.asked).toHaveLength(1);
  });

  test.each([
    ["its alias", { limits: { stopAtTools: ["twice"] } }],
    ["the agent's limits", { limits: {}, agent: { limits: { stopAtTools: ["double"] } } }],
    ["both", { limits: { stopAtTools: ["fail"] }, agent: { limits: { stopAtTools: ["double"] } } }],
  ])("is told so by %s", async (_, setting) => {
    const run = await stopping({ turns: [{ calls: [double(2)] }, { text: "never" }], ...setting });
    expect(await run.work()).toBe("ended");
    expect(await run.view()).toMatchObject(stopped);
  });

  test("waits for what was called beside it, and is over its limits then as little as any other", async () => {
    const turns = [{ calls: [double(2), { name: "fail" }, double(3)] }, { text: "never" }];
    const run = await stopping({ turns, limits: { stopAtTools: ["double"], maxTurns: 1 } });
    expect(await run.work()).toBe("ended");
    expect(await run.view()).toMatchObject({ ...stopped, outputText: "4" });
    expect(await run.results()).toHaveLength(3);
  });

  test("goes on where the tool fails, is refused, or another one answers", async () => {
    const turns = [
      { calls: [{ name: "fail" }] },
      { calls: [double(1)] },
      { calls: [{ name: "gone" }] },
      { text: "said" },
    ];
    const run = await stopping({ turns, limits: { stopAtTools: ["fail", "gone"] } });
    expect(await run.work()).toBe("ended");
    const { endReason, outputText } = await run.view();
    expect({ endReason, outputText }).toEqual({ endReason: RunEndReason.FINAL_ANSWER, outputText: "said" });
  });

  test("waits for the client whose function it is, and has its output as text", async () => {
    const options = { functionTools: [{ name: "submit" }] };
    const turns = [{ calls: [{ name: "submit", id: "q" }] }, { text: "never" }];
    const run = await stopping({ turns, options, limits: { stopAtTools: ["submit"] } });
    expect(await run.work()).toBe("parked");
    await run.answer("q", '"approved\\nby Ada"');
    expect(await run.work("another")).toBe("ended");
    expect(await run.view()).toMatchObject({ ...stopped, outputText: "approved\nby Ada" });
  });

  test.each([
    ["an object", { outputJson: '{"a": 1}' }, '{"a": 1}'],
    ["a text", { outputJson: ' "so" ' }, "so"],
  ])("has %s as its text", async (_, result, text) => {
    const answers: FakeTool = { name: "answers", answer: () => create(ProvidedResultSchema, result) };
    const turns = [{ calls: [{ name: "answers" }] }, { text: "never" }];
    const run = await stopping({ turns, tools: [answers], limits: { stopAtTools: ["answers"] } });
    expect(await run.work()).toBe("ended");
    expect(await run.view()).toMatchObject({ ...stopped, outputText: text });
  });

  test("goes on where the answer is to come later", async () => {
    const later: FakeTool = { name: "later", tool: { isAsync: true }, answer: () => ({ status: "pending" }) };
    const turns = [{ calls: [{ name: "later" }] }, { text: "It will come." }];
    const run = await stopping({ turns, tools: [later], agent: { limits: { stopAtTools: ["later"] } } });
    expect(await run.work()).toBe("ended");
    expect(await run.view()).toMatchObject({ endReason: RunEndReason.FINAL_ANSWER, outputText: "It will come." });
  });

  test("LOOP-18 returns the calls of its client first, where it is to return them", async () => {
    const options = { functionTools: [{ name: "ask" }], mode: RunMode.RETURN_CALLS };
    const run = await stopping({ turns: [{ calls: [double(2), { name: "ask" }] }, { text: "never" }], options });
    expect(await run.work()).toBe("ended");
    expect(await run.view()).toMatchObject({ endReason: RunEndReason.CLIENT_CALLS });
  });

  test("LOOP-13 ends so wherever it is taken up, and whatever the agent's limits are by then", async () => {
    for (let survives = 2; survives < 5; survives += 1) {
      const run = await stopping({ turns: [{ calls: [double(2)] }, { text: "never" }] });
      const { append } = run.log;
      let written = 0;
      run.log.append = async (record, position) => {
        written += 1;
        if (written === survives) throw new Error("killed");
        return append(record, position);
      };
      await expect(run.work()).rejects.toThrow("killed");
      run.log.append = append;
      const changed = limitsFrom(undefined, undefined);
      const isCommitted = run.events().some(({ event }) => event.case === "turnCommitted");
      await run.work("heir", isCommitted ? { limits: changed } : {});
      expect(await run.view(), `killed at event ${survives}`).toMatchObject({ ...stopped, turnCount: 1 });
    }
  });
});

test("LOOP-12 the text of an answer is that of its blocks, each on a line", () => {
  const answer = create(ToolResultSchema, { outputJson: jsonOfBlocks(blocks), content: blocks });
  expect(textFromResult(answer).split("\n")).toEqual(["seen", expect.stringContaining("image/png")]);
});

test("LOOP-12 a tool to stop at that no tool is called is refused by its name", async () => {
  const listed = await createFakeRouter(tools).listTools({}, { signal: AbortSignal.timeout(1_000), principal: "ada" });
  const faultsOf = (...stopAtTools: string[]) => {
    const options = create(RunOptionsSchema, {
      limits: create(LimitsSchema, { stopAtTools }),
      mcpServers: [{ name: "mine" }],
      functionTools: [{ name: "submit" }],
    });
    return faultsOfOptions(createToolTable(listed, options), options);
  };
  expect(faultsOf("twice", "submit", "@mine/anything")).toEqual([]);
  expect(faultsOf("dobule")).toEqual([
    { field: "options.limits.stop_at_tools", message: 'stop_at_tools names "dobule", which no tool is called' },
  ]);
});

test("LOOP-12 a pattern names no tool to stop at, and is refused", () => {
  const { violations } = contractValidator.validate(LimitsSchema, create(LimitsSchema, { stopAtTools: ["github/*"] }));
  expect(violations?.map(String)).toEqual([expect.stringContaining("stop_at_tools[0]")]);
  expect(contractValidator.validate(LimitsSchema, create(LimitsSchema, { stopAtTools: ["@hub/get"] })).kind).toBe(
    "valid",
  );
});
