import { Effect, ExecutionType, type Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { type Executor, PROVIDER_BY_KIND } from "./executor.ts";
import type { Offer } from "./offer.ts";

/** A tool of the catalogue with what its provider says of it, and why that cannot be used; empty when it can. */
export interface DescribedTool {
  tool: Tool;
  /** Whether the provider has not said yet what it is. */
  isAwaited: boolean;
  unavailable: string;
}

/**
 * For tools of the catalogue that a provider of the suite runs: what their entry leaves out (description, schemas, effect,
 * annotations, timeout) is as the provider describes it in its own offer, where it offers one of that kind and name.
 */
export function createDescriptions(offers: readonly Offer[]): (tool: Tool, executor: Executor) => DescribedTool {
  const own = offers.filter(({ declared }) => declared.size === 0);

  return (tool, executor) => {
    if (executor.kind !== "provider" || !PROVIDER_BY_KIND.has(tool.executionType))
      return { tool, isAwaited: false, unavailable: "" };
    const offer = own.find(({ provider }) => provider === executor.provider);
    const described = offer?.tools.find(
      (one) => one.tool?.name === executor.tool && one.tool.executionType === tool.executionType,
    );
    return {
      tool: described?.tool ? completed(tool, described.tool) : tool,
      isAwaited: offer?.isAwaited ?? false,
      unavailable: offer?.failure ?? "",
    };
  };
}

/** Whether a provider's own offer only describes the tool: what needs a policy is called by the catalogue's entry that has one. */
export function isDescriptionOnly(tool: Tool, provider: string): boolean {
  return tool.executionType === ExecutionType.BUILTIN && PROVIDER_BY_KIND.get(ExecutionType.BUILTIN) === provider;
}

const ANYTHING = new Set(["", '{"type":"object"}']);

function completed(tool: Tool, described: Tool): Tool {
  const { annotations = described.annotations } = tool;
  return {
    ...tool,
    description: tool.description || described.description,
    inputSchemaJson: ANYTHING.has(tool.inputSchemaJson) ? described.inputSchemaJson : tool.inputSchemaJson,
    outputSchemaJson: tool.outputSchemaJson || described.outputSchemaJson,
    effect: tool.effect === Effect.UNSPECIFIED ? described.effect : tool.effect,
    ...((tool.timeout ?? described.timeout) && { timeout: tool.timeout ?? described.timeout }),
    ...(annotations && { annotations }),
  };
}
