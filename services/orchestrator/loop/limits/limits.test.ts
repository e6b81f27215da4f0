import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { expect, test } from "vitest";
import { LimitsSchema, PriceSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { usd } from "#runtime/money/testing/dollars.ts";
import { limitsFrom } from "./limits.ts";

const validator = createValidator();
const limits = (given: MessageInitShape<typeof LimitsSchema>) => create(LimitsSchema, given);

test("LOOP-12 a max_cost of 0 is refused at the doors: whoever wants no limit leaves it out", () => {
  const violationsOf = (maxCost: ReturnType<typeof usd>) =>
    createValidator()
      .validate(LimitsSchema, limits({ maxCost }))
      .violations?.map(({ message }) => message) ?? [];
  expect(violationsOf(usd(0))).toEqual(["is more than 0; leave it out for no limit"]);
  expect(violationsOf({ ...usd(1), currencyCode: "usd" })).toHaveLength(1);
  expect(violationsOf(usd(0.000001))).toEqual([]);
});

test.each(["maxTurns", "maxParallelCalls", "maxTokens"] as const)(
  "LOOP-12 a limit %s of 0 is refused, and names it",
  (name) => {
    const zero = limits({ [name]: name === "maxTokens" ? 0n : 0 });
    expect(validator.validate(LimitsSchema, zero).violations).toMatchObject([{ field: [{ localName: name }] }]);
  },
);

test("LOOP-12 a price that lacks one of its two amounts is refused", () => {
  const half = create(PriceSchema, { currencyCode: "USD", inputMicrosPerMillionTokens: 0n });
  const whole = create(PriceSchema, { ...half, outputMicrosPerMillionTokens: 0n });
  expect(validator.validate(PriceSchema, half).violations).toMatchObject([
    { field: [{ localName: "outputMicrosPerMillionTokens" }] },
  ]);
  expect(validator.validate(PriceSchema, whole).kind).toBe("valid");
});

test("LOOP-12 of the costs of agent and run the lower one holds", () => {
  const maxCost = (agent: object, run: object) => limitsFrom(limits(agent), limits(run)).maxCost;
  expect(maxCost({ maxCost: usd(2) }, { maxCost: usd(0.5) })).toMatchObject(usd(0.5));
  expect(maxCost({ maxCost: usd(2) }, { maxCost: usd(5) })).toMatchObject(usd(2));
  expect(maxCost({}, { maxCost: usd(5) })).toMatchObject(usd(5));
});

test("LOOP-12 of agent and run the lower limit holds, and what neither says is the default", () => {
  const agent = limits({ maxTurns: 5, maxToolCalls: 20, maxTokens: 1_000n });
  const run = limits({ maxTurns: 9, maxToolCalls: 3, maxParallelCalls: 2 });
  expect(limitsFrom(agent, run)).toMatchObject({
    maxTurns: 5,
    maxToolCalls: 3,
    maxTokens: 1_000,
    maxParallelCalls: 2,
    maxCost: undefined,
  });
  expect(limitsFrom(agent, limits({ maxToolCalls: 0 })).maxToolCalls).toBe(0);
  expect(limitsFrom(undefined, undefined)).toMatchObject({ maxTurns: 10, maxParallelCalls: 8, modelStallMs: 60_000 });
});
