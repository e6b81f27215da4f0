import { create } from "@bufbuild/protobuf";
import {
  type ListToolsRequest,
  type ListToolsResponse,
  ListToolsResponseSchema,
  type ModelTool,
  ModelToolSchema,
} from "#gen/toolbus/router/v1/tool_router_pb.ts";
import type { Contexts } from "./contexts.ts";
import { aliasesOf } from "./resolve.ts";
import type { ToolEntry, ToolSet } from "./tool-set.ts";

/** The tools of a session, of an agent, or of the whole catalogue, by model name. */
export async function listTools(
  contexts: Contexts,
  request: ListToolsRequest,
  signal: AbortSignal,
): Promise<ListToolsResponse> {
  const context = await contexts.of(request);
  const tools = await contexts.tools(context, signal);
  const names = [...tools.byModelName.keys()].sort();
  return create(ListToolsResponseSchema, {
    tools: names.map((name) => modelToolFrom(tools, tools.byModelName.get(name)!)),
    sources: [...tools.sources],
    agent: context.agent.name,
    agentRevision: context.revision,
  });
}

function modelToolFrom(tools: ToolSet, entry: ToolEntry): ModelTool {
  const { modelName, reference, tool, decision, unavailable, isVisible, effect } = entry;
  const blockedBy = decision.kind === "blocked" ? decision.message : "";
  const told = { ...tool, visible: isVisible, effect, inputSchemaJson: tool.inputSchemaJson || '{"type":"object"}' };
  return create(ModelToolSchema, {
    modelName,
    reference,
    aliases: aliasesOf(tools, reference),
    tool: told,
    callable: decision.kind === "permitted",
    available: unavailable === "",
    reason: blockedBy || unavailable,
  });
}
