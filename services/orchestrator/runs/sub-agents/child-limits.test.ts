import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LimitsSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { RunBoundsSchema } from "#gen/toolbus/internal/run/v1/run_context_pb.ts";
import { RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { usd } from "#runtime/money/testing/dollars.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import type { EventBody } from "../../log/journal.ts";
import { type FoldedRun, foldLog } from "../../log/state/fold.ts";
import { limitsFrom } from "../../loop/limits/limits.ts";
import { recordsOf } from "../../testing/fakes/memory-log.ts";
import { callsLeft, childLimits, faultOfCaller } from "./child-limits.ts";

function spending(tokens: bigint, dollars: number): FoldedRun {
  const usage = { inputTokens: tokens, outputTokens: 0n, cost: usd(dollars) };
  const events: EventBody[] = [
    { case: "accepted", value: {} },
    { case: "turnCommitted", value: { turn: 1, usage } },
  ];
  return foldLog(recordsOf(events.map((event, sequence) => create(RunEventSchema, { runId: "r", sequence, event }))))!;
}

const parentLimits = (limits: object) => limitsFrom(create(LimitsSchema, limits), undefined);

describe("the limits of a called agent's run", () => {
  test("LOOP-17 are its own, inside what is left to the run that calls", () => {
    const limits = parentLimits({ maxTokens: 1_000n, maxCost: usd(2), maxToolCalls: 5 });
    const stopAtTools = ["submit"];
    const offered = create(LimitsSchema, { maxTokens: 5_000n, maxCost: usd(0.5), maxTurns: 3, stopAtTools });
    expect(childLimits(offered, { limits, state: spending(400n, 1) }, 30_000)).toMatchObject({
      maxTokens: 600n,
      maxCost: usd(0.5),
      maxTurns: 3,
      stopAtTools,
      maxToolCalls: 5,
      timeout: durationFromMs(30_000),
    });
  });

  test("LOOP-17 LOOP-12 are none to begin with once the run that calls has nothing left, by its log or by what its call says", () => {
    const limits = parentLimits({ maxTokens: 1_000n, maxCost: usd(2) });
    const bounds = (left: MessageInitShape<typeof RunBoundsSchema>) => create(RunBoundsSchema, left);
    expect(faultOfCaller({ limits, state: spending(999n, 1.9) })).toBeUndefined();
    expect(faultOfCaller({ limits, state: spending(1_000n, 0) })).toMatch(/max_tokens/);
    expect(faultOfCaller({ limits, state: spending(0n, 2) })).toMatch(/max_cost/);
    expect(faultOfCaller({ limits, state: spending(0n, 0), bounds: bounds({ tokensLeft: 0n }) })).toMatch(/used up/);
    expect(faultOfCaller({ limits: parentLimits({ maxDepth: 0 }), state: undefined })).toMatch(/max_depth/);
  });

  test("LOOP-17 LOOP-12 are inside what the call itself says is left, too", () => {
    const limits = parentLimits({ maxTokens: 1_000n, maxCost: usd(2), maxToolCalls: 9 });
    const bounds = create(RunBoundsSchema, { call: 7, maxToolCalls: 9, tokensLeft: 70n, costLeft: usd(0.5) });
    const given = childLimits(undefined, { limits, state: spending(400n, 1), bounds }, 30_000);
    expect(given).toMatchObject({ maxTokens: 70n, maxCost: usd(0.5), maxToolCalls: 2 });
    expect(callsLeft({ limits, state: undefined, bounds: create(RunBoundsSchema, { call: 9, maxToolCalls: 9 }) })).toBe(
      0,
    );
  });

  test("LOOP-17 without any limit there is none, but for the depth", () => {
    const limits = parentLimits({});
    const given = childLimits(undefined, { limits, state: undefined }, Number.POSITIVE_INFINITY);
    expect(given).toMatchObject({ maxDepth: 2 });
    for (const name of ["maxTokens", "maxCost", "maxToolCalls", "timeout"]) expect(given).not.toHaveProperty(name);
  });

  test("LOOP-17 are never above what is left, and never none where there is a limit", () => {
    const amount = fc.integer({ min: 0, max: 10_000 });
    const inMicros = (micros: number) => ({ currencyCode: "USD", micros: BigInt(micros) });
    fc.assert(
      fc.property(amount, amount, amount, amount, (budget, own, spent, timeLeftMs) => {
        const limits = parentLimits({ maxTokens: BigInt(budget + 1), maxCost: inMicros(budget + 1) });
        const offered = create(LimitsSchema, { maxTokens: BigInt(own), timeout: durationFromMs(own) });
        const given = childLimits(offered, { limits, state: spending(BigInt(spent), spent / 1_000_000) }, timeLeftMs);
        const micros = Number(given.maxCost?.micros);
        expect(micros).toBeGreaterThanOrEqual(1);
        expect(micros).toBeLessThanOrEqual(Math.max(1, budget + 1 - spent));
        expect(Number(given.maxTokens)).toBeGreaterThanOrEqual(1);
        expect(Number(given.maxTokens)).toBeLessThanOrEqual(Math.max(1, budget + 1 - spent));
        const timeoutMs = msFromDuration(given.timeout as Duration | undefined);
        expect(timeoutMs).toBeGreaterThanOrEqual(1);
        expect(timeoutMs).toBeLessThanOrEqual(Math.max(1, timeLeftMs));
      }),
    );
  });
});
