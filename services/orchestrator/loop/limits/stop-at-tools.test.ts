import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { LimitsSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { RunEndReason, RunOptionsSchema, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { createFakeRouter } from "../../testing/fakes/fake-router.ts";
import { double, openRun, type Setting, tools } from "../../testing/loop-run.ts";
import { createToolTable, faultsOfOptions } from "../tools/tool-table.ts";
import { limitsFrom } from "./limits.ts";

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

  test("LOOP-13 ends so wherever it is taken up, and whatever the agent's limits are by then", async () => {
    for (let survives = 3; survives < 7; survives += 1) {
      const run = await stopping({ turns: [{ calls: [double(2)] }, { text: "never" }] });
      const { append } = run.log;
      let written = 0;
      run.log.append = async (record, position) => {
        written += 1;
        if (written === survives) throw new Error("killed");
        return append(record, position);
      };
      const outcome = await run.work().catch(() => "killed");
      run.log.append = append;
      const changed = limitsFrom(undefined, undefined);
      const isCommitted = run.events().some(({ event }) => event.case === "turnCommitted");
      if (outcome === "killed") await run.work("heir", isCommitted ? { limits: changed } : {});
      expect(await run.view(), `killed at event ${survives}`).toMatchObject({ ...stopped, turnCount: 1 });
    }
  });
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
  expect(faultsOf("dobule")).toEqual(['stop_at_tools names "dobule", which no tool is called']);
});
