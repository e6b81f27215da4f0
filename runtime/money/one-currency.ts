import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";

/** Something that is said in a currency, and where. */
export interface Priced {
  readonly path: string;
  readonly currencyCode: string;
}

export interface CurrencyMismatch {
  readonly other: Priced;
  /** What the agent is in, by what says so first. */
  readonly agents: Priced;
}

/**
 * LOOP-12: what one agent says of money, and `more` that its run asks for, is in one currency: there are no rates here by which
 * a price could be held against a limit.
 */
export function currencyMismatches(agent: Agent, ...more: readonly Priced[]): CurrencyMismatch[] {
  const [agents, ...others] = [...pricedIn(agent), ...more];
  if (agents === undefined) return [];
  return others.flatMap((other) => (other.currencyCode === agents.currencyCode ? [] : [{ other, agents }]));
}

function pricedIn({ model, fallbackModel, limits, subAgents }: Agent): Priced[] {
  const amounts = [
    ["model.price", model?.price],
    ["fallbackModel.price", fallbackModel?.price],
    ["limits.maxCost", limits?.maxCost],
    ...subAgents.map(({ limits: own }, index) => [`subAgents[${index}].limits.maxCost`, own?.maxCost] as const),
  ] as const;
  return amounts.flatMap(([path, said]) => (said === undefined ? [] : [{ path, currencyCode: said.currencyCode }]));
}
