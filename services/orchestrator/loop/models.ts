import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { Model } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { Usage } from "#gen/toolbus/run/v1/run_pb.ts";

/** A model and what its agent says of it. */
export interface AgentModel {
  readonly language: LanguageModelV4;
  readonly config: Model;
}

/** The models of an agent in the order in which they are asked; who fails over stays there while this process has the run. */
export interface ModelRow {
  readonly current: AgentModel;
  /** How many were given up. */
  readonly failovers: number;
  /** Whether there is another one to ask. */
  readonly hasNext: boolean;
  /** Goes on to the next one. */
  failOver(): void;
}

export function createModelRow(first: AgentModel, ...others: readonly AgentModel[]): ModelRow {
  let current = first;
  const rest = [...others];
  let failovers = 0;
  return {
    get current() {
      return current;
    },
    get failovers() {
      return failovers;
    },
    get hasNext() {
      return rest.length > 0;
    },
    failOver() {
      current = rest.shift() ?? current;
      failovers += 1;
    },
  };
}

/** What was used, with what it costs at the model's price. */
export function pricedUsage(
  { price }: Model,
  { inputTokens, outputTokens }: Pick<Usage, "inputTokens" | "outputTokens">,
): Pick<Usage, "inputTokens" | "outputTokens" | "cost"> {
  const { inputPerMillion = 0, outputPerMillion = 0 } = price ?? {};
  const cost = (Number(inputTokens) * inputPerMillion + Number(outputTokens) * outputPerMillion) / 1_000_000;
  return { inputTokens, outputTokens, cost };
}
