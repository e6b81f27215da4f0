import type { Agent, Limits } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { type Amount, lowerAmount, textOfAmount } from "#runtime/money/money.ts";
import { currencyMismatches } from "#runtime/money/one-currency.ts";
import { msFromDuration } from "#runtime/time/duration.ts";

export interface RunLimits {
  readonly maxTurns: number;
  readonly maxToolCalls: number;
  readonly maxParallelCalls: number;
  readonly deadlineMs: number;
  readonly maxTokens: number;
  /** In the currency of the models' prices; undefined for any amount. */
  readonly maxCost: Amount | undefined;
  readonly modelStallMs: number;
  readonly modelRetries: number;
  /** How deep agents may call agents below this run. */
  readonly maxDepth: number;
  /** Whose answer ends the run. */
  readonly stopAtTools: readonly string[];
}

/** LOOP-12: the agent's limits, and the run's where they are lower; what neither has is the default. Tools to stop at are those of both. */
export function limitsFrom(agent: Limits | undefined, run: Limits | undefined): RunLimits {
  type Name = "maxTurns" | "maxToolCalls" | "maxParallelCalls";
  const lower = (name: Name, otherwise: number) => lowest([agent?.[name], run?.[name]], otherwise);
  return {
    maxTurns: lower("maxTurns", 10),
    maxToolCalls: lower("maxToolCalls", Number.POSITIVE_INFINITY),
    maxParallelCalls: lower("maxParallelCalls", 8),
    deadlineMs: lowest([agent?.timeout, run?.timeout].map(msFromDuration), Number.POSITIVE_INFINITY),
    maxTokens: lowest([agent?.maxTokens, run?.maxTokens].map(numberFrom), Number.POSITIVE_INFINITY),
    maxCost: lowerAmount(agent?.maxCost, run?.maxCost),
    modelStallMs: lowest([agent?.modelStallTimeout, run?.modelStallTimeout].map(msFromDuration), 60_000),
    modelRetries: run?.modelRetries ?? agent?.modelRetries ?? 4,
    maxDepth: Math.min(agent?.maxDepth ?? 3, run?.maxDepth ?? Number.POSITIVE_INFINITY),
    stopAtTools: [...(agent?.stopAtTools ?? []), ...(run?.stopAtTools ?? [])],
  };
}

/** Why a run's cost cannot be held against its limits. */
export interface CostFault {
  readonly kind: "unpriced" | "currency";
  readonly text: string;
}

/**
 * LOOP-12: a budget that nothing counts towards would be none. What is free has a price, too: that of 0. `limits` are those that the
 * run brings along, whose path is told with `at`.
 */
export function faultOfCost(agent: Agent, limits: Pick<Limits, "maxCost"> | undefined, at = ""): CostFault | undefined {
  const maxCost = limits?.maxCost ?? agent.limits?.maxCost;
  const path = `${at}max_cost`;
  const own = limits?.maxCost && { path, currencyCode: limits.maxCost.currencyCode };
  const [mismatch] = currencyMismatches(agent, ...(own ? [own] : []));
  if (mismatch !== undefined) {
    const { other, agents } = mismatch;
    const whose = `${agents.path} of agent ${agent.name} is in ${agents.currencyCode}`;
    return { kind: "currency", text: `${other.path} is in ${other.currencyCode}, but ${whose}` };
  }
  const { name, model, fallbackModel } = agent;
  const unpriced = [model, fallbackModel].find((config) => config !== undefined && config.price === undefined);
  if (maxCost === undefined || unpriced === undefined) return undefined;
  const which = `the model "${unpriced.model}" of agent ${name}`;
  const text = `${path} is ${textOfAmount(maxCost)}, but ${which} has no price: no cost would ever reach it`;
  return { kind: "unpriced", text };
}

function lowest(limits: (number | undefined)[], otherwise: number): number {
  const given = limits.filter((limit) => limit !== undefined);
  return given.length === 0 ? otherwise : Math.min(...given);
}

function numberFrom(limit: bigint | undefined): number | undefined {
  return limit === undefined ? undefined : Number(limit);
}
