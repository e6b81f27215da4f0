import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type RunBoundsSchema, RunContextSchema } from "#gen/toolbus/internal/run/v1/run_context_pb.ts";
import { ToolChoiceMode } from "#gen/toolbus/run/v1/run_pb.ts";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { CallToolRequestSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { usd } from "#runtime/money/testing/dollars.ts";
import { agent, catalogueOf, tool } from "../../testing/fakes/tools.ts";
import { createToolSet } from "../../tools/tool-set/tool-set.ts";
import { decideByRun, decideByTally } from "./run-bounds.ts";
import { createRunTally } from "./run-tally.ts";

const pure = tool("look", { effect: Effect.PURE });
const tools = createToolSet(agent({ use: ["*"], aliases: { see: "look" } }), catalogueOf(pure, tool("send")), []);
const look = tools.byReference.get("look")!;
const send = { ...tools.byReference.get("send")!, effect: Effect.AT_MOST_ONCE };
const now = 1_000_000;

function callWith(
  bounds: MessageInitShape<typeof RunBoundsSchema> | undefined,
  recovering: boolean,
  request: MessageInitShape<typeof CallToolRequestSchema>,
) {
  const context = create(RunContextSchema, { recovering, ...(bounds && { bounds }) });
  return { ...create(CallToolRequestSchema, request), context };
}

function ruleFor(
  bounds: MessageInitShape<typeof RunBoundsSchema>,
  { recovering = false, ...more }: MessageInitShape<typeof CallToolRequestSchema> & { recovering?: boolean } = {},
  entry = look,
): string | undefined {
  const request = callWith(bounds, recovering, {
    callId: "c",
    sessionId: "s",
    runId: "r",
    name: "x",
    ...more,
  });
  return decideByRun({ tools, limits: undefined }, entry, request, now)?.rule;
}

describe("what a run leaves to its calls", () => {
  test.each([
    ["LOOP-1 turns", { turn: 4, maxTurns: 3 }, /max_turns/],
    ["LOOP-1 calls", { call: 6, maxToolCalls: 5 }, /max_tool_calls/],
    ["LOOP-12 tokens", { tokensLeft: 0n }, /max_tokens/],
    ["LOOP-12 cost", { costLeft: usd(0) }, /max_cost/],
    ["LOOP-2 the mode none", { toolChoice: ToolChoiceMode.NONE }, /tool_choice is "none"/],
    ["LOOP-2 a forced tool", { forcedTool: "send" }, /tool_choice forces "send"/],
    ["LOOP-2 a forced tool that is no tool of the router", { forcedTool: "ask" }, /tool_choice forces "ask"/],
  ])("%s, is held once more", (_, bounds, rule) => {
    expect(ruleFor(bounds)).toMatch(rule);
  });

  test("LOOP-1 LOOP-2 LOOP-12 lets the last one go on", () => {
    const bounds = {
      turn: 3,
      maxTurns: 3,
      call: 5,
      maxToolCalls: 5,
      tokensLeft: 1n,
      costLeft: usd(0.01),
      forcedTool: "see",
    };
    expect(ruleFor(bounds)).toBeUndefined();
    expect(ruleFor({ toolChoice: ToolChoiceMode.REQUIRED })).toBeUndefined();
    expect(ruleFor({ turn: 400, call: 400 })).toBeUndefined();
  });

  test("LOOP-1 nothing begins after the run's deadline", () => {
    expect(ruleFor({}, { deadline: timestampFromMs(now) })).toMatch(/deadline/);
    expect(ruleFor({}, { deadline: timestampFromMs(now + 1) })).toBeUndefined();
  });

  test("LOOP-12 LOOP-14 a used-up budget ends nothing that may be under way after a crash", () => {
    const bounds = { tokensLeft: 0n };
    expect(ruleFor(bounds, { recovering: true })).toBeUndefined();
    expect(ruleFor(bounds, { recovering: true }, send)).toMatch(/max_tokens/);
    expect(ruleFor({ call: 2, maxToolCalls: 1 }, { recovering: true })).toMatch(/max_tool_calls/);
  });

  test("LOOP-12 is at most what the agent's configuration allows, whatever the call says", () => {
    const limits = { maxTurns: 3, maxToolCalls: 2 };
    const rule = (bounds: MessageInitShape<typeof RunBoundsSchema>) =>
      decideByRun({ tools, limits }, look, callWith(bounds, false, {}), now)?.rule;
    expect(rule({ turn: 4, maxTurns: 99 })).toMatch(/max_turns/);
    expect(rule({ call: 3 })).toMatch(/max_tool_calls/);
    expect(rule({ turn: 3, call: 2 })).toBeUndefined();
    const tally = createRunTally();
    const passes = ["a", "b", "c"].map((callId) => {
      const request = callWith(undefined, false, { callId, sessionId: "s", runId: "r" });
      return decideByTally(tally, { tools, limits }, look, request) === undefined;
    });
    expect(passes).toEqual([true, true, false]);
  });

  test("ORCH-2 a refusal names agent, tool and rule", () => {
    const request = callWith({ call: 2, maxToolCalls: 1 }, false, { name: "see" });
    expect(decideByRun({ tools, limits: undefined }, look, request, now)).toMatchObject({
      message: 'Agent "tester" may not call tool "look": the run\'s limit of tool calls (max_tool_calls) is used up.',
    });
  });
});

describe("the calls of a run that a router lets go on", () => {
  const counts = (tally: ReturnType<typeof createRunTally>, callId: string, maxToolCalls: number, runId = "r") =>
    decideByTally(
      tally,
      { tools, limits: undefined },
      look,
      callWith({ call: 1, maxToolCalls }, false, { callId, sessionId: "s", runId }),
    ) === undefined;

  test("LOOP-1 are no more than max_tool_calls, whatever number they say they have; a repeated one counts once", () => {
    const step = fc.record({ callId: fc.integer({ min: 0, max: 20 }).map(String), runId: fc.constantFrom("a", "b") });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), fc.integer({ min: 1, max: 8 }), (steps, most) => {
        const tally = createRunTally();
        const passed = new Map<string, Set<string>>([
          ["a", new Set()],
          ["b", new Set()],
        ]);
        for (const { callId, runId } of steps) {
          const fromRun = passed.get(runId)!;
          const mayPass = fromRun.has(callId) || fromRun.size < most;
          expect(counts(tally, callId, most, runId)).toBe(mayPass);
          if (mayPass) fromRun.add(callId);
        }
      }),
    );
  });

  test("LOOP-16 are forgotten when many other runs called since: what is remembered has an end", () => {
    const tally = createRunTally(3, 5);
    for (const run of ["a", "b", "c", "d"]) for (const id of ["1", "2"]) expect(counts(tally, id, 2, run)).toBe(true);
    expect(counts(tally, "3", 2, "d")).toBe(false);
    expect(counts(tally, "3", 2, "a")).toBe(true);
  });
});
