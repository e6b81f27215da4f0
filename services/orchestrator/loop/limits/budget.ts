/**
 * What is left of a run's tokens and cost.
 *
 * Budgets count from the log: what sub-agents, dropped answers and tools used counts too, and a crash forgets nothing. Only what
 * is in flight can exceed a budget. Once one is used up, no call begins and no client is asked. A cost in another currency than
 * `max_cost` uses the budget up. Each call tells the router where the run stands and what is left to it; the router checks it again.
 */

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { RunBoundsSchema } from "#gen/toolbus/internal/run/v1/run_context_pb.ts";
import type { RunOptions } from "#gen/toolbus/run/v1/run_pb.ts";
import { amountLeft, shareOfAmount } from "#runtime/money/money.ts";
import { ruleOfBudget } from "#runtime/rpc/run-bounds.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import type { Spent } from "../../log/state/spent.ts";
import type { RunLimits } from "./limits.ts";

type Budget = Pick<RunLimits, "maxTokens" | "maxCost">;

/** What is left of a run's tokens, infinite where nothing limits it, and of what it may cost, undefined where nothing does. */
export function leftOf({ inputTokens, outputTokens, cost }: Spent, { maxTokens, maxCost }: Budget) {
  return {
    tokens: Math.max(0, maxTokens - Number(inputTokens + outputTokens)),
    cost: maxCost && amountLeft(maxCost, cost),
  };
}

/** Why nothing further may begin; undefined as long as something is left. What is in flight is over it at most. */
export function faultOfBudget(spent: Spent, budget: Budget): string | undefined {
  return ruleOfBudget(boundsOfBudget(spent, budget, 1));
}

/** One of `shares` equal parts of what is left. */
function boundsOfBudget(spent: Spent, budget: Budget, shares: number) {
  const { tokens, cost } = leftOf(spent, budget);
  return {
    ...(Number.isFinite(tokens) && { tokensLeft: BigInt(Math.floor(tokens / shares)) }),
    ...(cost && { costLeft: shareOfAmount(cost, shares) }),
  };
}

/** Where a call stands in its run, as its turn was committed: what the loop judges it by. */
export interface Place {
  readonly options: RunOptions | undefined;
  readonly turn: number;
  /** Its number among all calls of the run, from 1. */
  readonly call: number;
  readonly spent: Spent;
  readonly limits: RunLimits;
}

export function boundsOf({ options, turn, call, spent, limits }: Place) {
  const { maxTurns, maxToolCalls } = limits;
  return {
    turn,
    maxTurns,
    call,
    ...(Number.isFinite(maxToolCalls) && { maxToolCalls }),
    ...choiceOfTurn(options, turn),
    ...boundsOfBudget(spent, limits, 1),
  };
}

/**
 * The bounds that go to the router with a call of the last turn, `index` among its calls, for the same check once more.
 *
 * A call that can spend is one of `sharers` open ones, and has its share of what the log shows to be left. Who keeps to its share
 * leaves no less to each of the others than they were promised, whenever they begin and whoever begins them: what all of
 * them use is over the limit by no more than each exceeds its own share, which is its answer in flight.
 */
export function boundsOfCall(
  state: FoldedRun,
  limits: RunLimits,
  { index, sharers }: { index: number; sharers?: number | undefined },
): MessageInitShape<typeof RunBoundsSchema> {
  const { accepted, turns, atTurn, spent, callCount } = state;
  const { maxToolCalls } = limits;
  const number = atTurn.callsBefore + index + 1;
  const ownCalls = sharers && Math.floor(Math.max(0, maxToolCalls - callCount) / sharers);
  const call = ownCalls !== undefined && Number.isFinite(ownCalls) ? Math.max(number, maxToolCalls - ownCalls) : number;
  return {
    ...boundsOf({ options: accepted.options, turn: turns.length, call, spent, limits }),
    ...boundsOfBudget(spent, limits, sharers ?? 1),
  };
}

/** LOOP-2: a tool is forced for the first turn only. */
function choiceOfTurn(options: RunOptions | undefined, turn: number) {
  const choice = options?.toolChoice?.choice;
  if (choice?.case === "mode") return { toolChoice: choice.value };
  return choice?.case === "forcedTool" && turn === 1 ? { forcedTool: choice.value } : {};
}
