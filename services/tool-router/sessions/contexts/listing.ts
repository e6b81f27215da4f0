import { hash } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  type ListToolsRequest,
  type ListToolsResponse,
  ListToolsResponseSchema,
  type ModelTool,
  ModelToolSchema,
} from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { openPage, pageOf } from "#runtime/rpc/paging/page.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import { publicDefinition } from "../../catalogue/public-view.ts";
import { aliasesOf } from "../../tools/resolve.ts";
import type { ToolEntry, ToolSet } from "../../tools/tool-set/tool-set.ts";
import type { AgentContext } from "./agent-context.ts";
import { type AskedContextParts, withAskedContext } from "./asked-context.ts";
import type { Contexts } from "./contexts.ts";
import type { RunSources } from "./sources/run-sources.ts";

/** The tools of a session, of an agent, or of the whole catalogue, by model name. */
export async function listTools(
  parts: AskedContextParts,
  request: ListToolsRequest,
  signal: AbortSignal,
): Promise<ListToolsResponse> {
  const { contexts } = parts;
  const { sourceWait, changeWait, knownToolsRevision } = request;
  const waitMs = msFromDuration(changeWait) ?? 0;
  async function list(context: AgentContext): Promise<ListToolsResponse> {
    const read = async () =>
      pageOfTools(await contexts.tools(context, signal, msFromDuration(sourceWait)), context, request);
    const isOther = (tools: ToolSet) => revisionOf(tools, context.revision) !== knownToolsRevision;
    const page = await read();
    return page.unchanged && (await contexts.waitForChange(context, isOther, waitMs, signal)) ? read() : page;
  }
  return withAskedContext(parts, request, list, signal);
}

function pageOfTools(tools: ToolSet, context: AgentContext, request: ListToolsRequest): ListToolsResponse {
  const { revision: contextRevision } = context;
  const list = listFrom(tools);
  const named = { agent: list.agent, contextRevision, toolsRevision: revisionOf(tools, contextRevision) };
  const { scope, pageToken } = request;
  const isFirst = pageToken === "";
  if (isFirst && named.toolsRevision === request.knownToolsRevision)
    return create(ListToolsResponseSchema, { ...named, unchanged: true });
  const listed = {
    elements: list.tools,
    placeOf: ({ modelName }: ModelTool) => modelName,
    takes: openPage(ModelToolSchema),
  };
  const { items, nextPageToken } = pageOf(["tools", scope.case ?? "", ...idsOf(scope)], listed, request);
  return { ...list, ...named, tools: items, sources: isFirst ? list.sources : [], nextPageToken };
}

function idsOf(scope: ListToolsRequest["scope"]): string[] {
  return scope.case === "session" ? [scope.value.sessionId, scope.value.runId] : [scope.value ?? ""];
}

/**
 * The revision of the list that a session would get, by what is known here at this moment; empty when the session is not in
 * use here, or somebody has not said yet what it offers.
 */
export function toolsRevision(contexts: Contexts, sessionId: string, run?: Partial<RunSources>): string {
  const known = contexts.known(sessionId, run);
  return known === undefined ? "" : revisionOf(known.tools, known.contextRevision);
}

/** Sessions that share a tool set may have several revisions of their contexts. */
function revisionOf(tools: ToolSet, contextRevision: number): string {
  return digestOf(`${contextRevision} ${listFrom(tools).toolsRevision}`);
}

const digestOf = (of: string | Uint8Array) => hash("sha256", of, "base64url");

const listsByToolSet = new WeakMap<ToolSet, ListToolsResponse>();

/** The whole list, with the revision of it alone. */
function listFrom(tools: ToolSet): ListToolsResponse {
  const made = listsByToolSet.get(tools);
  if (made !== undefined) return made;
  const names = [...tools.byModelName.keys()].sort();
  const list = create(ListToolsResponseSchema, {
    tools: names.map((name) => modelToolFrom(tools, tools.byModelName.get(name)!)),
    sources: [...tools.sources],
    agent: tools.agent,
  });
  list.toolsRevision = digestOf(toBinary(ListToolsResponseSchema, list));
  listsByToolSet.set(tools, list);
  return list;
}

function modelToolFrom(tools: ToolSet, entry: ToolEntry): ModelTool {
  const { modelName, reference, tool, decision, unavailable, isVisible, effect } = entry;
  const blockedBy = decision.kind === "blocked" ? decision.message : "";
  const inputSchemaJson = tool.inputSchemaJson || '{"type":"object"}';
  const shown = { ...publicDefinition(tool), visible: isVisible, effect, inputSchemaJson }; // to whoever may have a session
  return create(ModelToolSchema, {
    modelName,
    reference,
    aliases: aliasesOf(tools, reference),
    tool: shown,
    callable: decision.kind === "permitted",
    available: unavailable === "",
    reason: blockedBy || unavailable,
  });
}
