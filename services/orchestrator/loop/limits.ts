import type { Agent, Limits } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { msFromDuration } from "#runtime/time/duration.ts";

/** The limits of one run. */
export interface RunLimits {
  readonly maxTurns: number;
  readonly maxToolCalls: number;
  readonly maxParallelCalls: number;
  readonly deadlineMs: number;
  readonly maxTokens: number;
  /** In the currency of the models' prices. */
  readonly maxCost: number;
  readonly modelStallMs: number;
  readonly modelRetries: number;
  /** How deep agents may call agents below this run. */
  readonly maxDepth: number;
}

/** LOOP-12: the agent's limits, and the run's where they are lower; 0 and absent mean the default. */
export function limitsFrom(agent: Limits | undefined, run: Limits | undefined): RunLimits {
  type NumberLimit = Exclude<
    keyof RunLimits,
    "deadlineMs" | "maxTokens" | "modelStallMs" | "modelRetries" | "maxDepth"
  >;
  const lower = (name: NumberLimit, otherwise: number) => lowest([agent?.[name], run?.[name]], otherwise);
  return {
    maxTurns: lower("maxTurns", 10),
    maxToolCalls: lower("maxToolCalls", Number.POSITIVE_INFINITY),
    maxParallelCalls: lower("maxParallelCalls", 8),
    deadlineMs: lowest([agent?.timeout, run?.timeout].map(msFromDuration), Number.POSITIVE_INFINITY),
    maxTokens: lowest([agent?.maxTokens, run?.maxTokens].map(Number), Number.POSITIVE_INFINITY),
    maxCost: lower("maxCost", Number.POSITIVE_INFINITY),
    modelStallMs: lowest([agent?.modelStallTimeout, run?.modelStallTimeout].map(msFromDuration), 60_000),
    modelRetries: run?.modelRetries ?? agent?.modelRetries ?? 4,
    maxDepth: Math.min(agent?.maxDepth ?? 3, run?.maxDepth ?? Number.POSITIVE_INFINITY),
  };
}

/** LOOP-12: a budget that nothing counts towards would be none. What is free has a price, too: that of 0. */
export function faultOfPrices({ maxCost }: Pick<RunLimits, "maxCost">, agent: Agent): string | undefined {
  if (!Number.isFinite(maxCost)) return undefined;
  const { name, model, fallbackModel } = agent;
  const unpriced = [model, fallbackModel].find((config) => config !== undefined && config.price === undefined);
  if (unpriced === undefined) return undefined;
  const which = `the model "${unpriced.model}" of agent ${name}`;
  return `max_cost is ${maxCost}, but ${which} has no price: no cost would ever reach it`;
}

function lowest(limits: (number | undefined)[], otherwise: number): number {
  const given = limits.filter((limit) => limit !== undefined && limit > 0) as number[];
  return given.length === 0 ? otherwise : Math.min(...given);
}
