import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { type Source, SourceSchema } from "#gen/toolbus/tool/v1/source_pb.ts";
import { ExecutionType, type Tool, ToolSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Offer } from "../../tools/tool-set/offer.ts";
import { createToolSet, type ToolEntry } from "../../tools/tool-set/tool-set.ts";

export function tool(name: string, more: MessageInitShape<typeof ToolSchema> = {}): Tool {
  return create(ToolSchema, { name, executionType: ExecutionType.INTERNAL, ...more });
}

export function agent(tools: MessageInitShape<typeof AgentSchema>["tools"] = {}, name = "tester") {
  return create(AgentSchema, { name, ...(tools && { tools }) });
}

export function catalogueOf(...tools: Tool[]): Map<string, Tool> {
  return new Map(tools.map((one) => [one.name, one]));
}

/** What a provider offers: declared sources with their tools, or bare tools of its own. */
export function offer(provider: string, tools: Record<string, string[]>, more: Partial<Offer> = {}): Offer {
  const sources = Object.keys(tools).filter((name) => name !== "");
  const declared = new Map<string, Source>(sources.map((name) => [name, create(SourceSchema, { name })]));
  const offered = Object.entries(tools).flatMap(([source, names]) =>
    names.map((name) => ({
      $typeName: "toolbus.provider.v1.OfferedTool" as const,
      resumable: false,
      source,
      tool: tool(name, { executionType: ExecutionType.MCP }),
    })),
  );
  return { provider, declared, tools: offered, sources: [], failure: "", ...more };
}

/** The entry of a catalogue's tool that an agent uses. */
export function entryOf(one: Tool): ToolEntry {
  return createToolSet(agent({ use: ["*"] }), catalogueOf(one), []).byReference.get(one.name)!;
}
