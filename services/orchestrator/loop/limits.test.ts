import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { LimitsSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { limitsFrom } from "./limits.ts";

const limits = (given: MessageInitShape<typeof LimitsSchema>) => create(LimitsSchema, given);

test("LOOP-12 of agent and run the lower limit holds, and what neither says is the default", () => {
  const agent = limits({ maxTurns: 5, maxToolCalls: 20, maxTokens: 1_000n });
  const run = limits({ maxTurns: 9, maxToolCalls: 3, maxParallelCalls: 2 });
  expect(limitsFrom(agent, run)).toMatchObject({
    maxTurns: 5,
    maxToolCalls: 3,
    maxTokens: 1_000,
    maxParallelCalls: 2,
    maxCost: Number.POSITIVE_INFINITY,
  });
  expect(limitsFrom(undefined, undefined)).toMatchObject({ maxTurns: 10, maxParallelCalls: 8, modelStallMs: 60_000 });
});
