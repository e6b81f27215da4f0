/**
 * The models of an agent, and what a request to one costs: whole micros of a currency, rounded up once a request.
 *
 * `max_cost` needs a price of each of the agent's models (0 for what is free), all in its currency. Otherwise the agent is not
 * loaded, the run not accepted and the agent not called (`MODEL_PRICE_MISSING`, `CURRENCY_MISMATCH`).
 */

import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { Model } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { costOfTokens } from "#runtime/money/money.ts";
import type { Tokens } from "#runtime/money/tokens.ts";

/** A model and what its agent says of it. */
export interface AgentModel {
  readonly language: LanguageModelV4;
  readonly config: Model;
}

export type ModelRow = ReturnType<typeof createModelRow>;

/** The models of an agent in the order in which they are asked; after a failover, the run stays with the next model while this process has it. */
export function createModelRow(first: AgentModel, ...others: readonly AgentModel[]) {
  let current = first;
  const rest = [...others];
  let failovers = 0;
  return {
    get current() {
      return current;
    },
    /** How many were given up. */
    get failovers() {
      return failovers;
    },
    /** Whether there is another one to ask. */
    get hasNext() {
      return rest.length > 0;
    },
    /** Goes on to the next one. */
    failOver(): void {
      current = rest.shift() ?? current;
      failovers += 1;
    },
  };
}

/** What one request used, with what it costs at the model's price. */
export function pricedUsage({ price }: Model, used: Tokens) {
  const { inputMicrosPerMillionTokens: input, outputMicrosPerMillionTokens: output } = price ?? {};
  if (price === undefined || input === undefined || output === undefined) return used;
  const micros = costOfTokens([
    { count: used.inputTokens, microsPerMillion: input },
    { count: used.outputTokens, microsPerMillion: output },
  ]);
  return { ...used, cost: { currencyCode: price.currencyCode, micros } };
}
