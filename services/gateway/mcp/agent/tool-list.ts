import { createHash } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions, Client } from "@connectrpc/connect";
import type { ToolAnnotations as McpAnnotations, Tool as McpTool } from "@modelcontextprotocol/server";
import { Effect, ExecutionType, type Tool, type ToolAnnotations } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type {
  ListToolsRequestSchema,
  ListToolsResponse,
  ModelTool,
  ToolService,
} from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { instructionsOfSources } from "#runtime/content/instructions-of-sources.ts";
import { wholeList } from "#runtime/rpc/paging/whole-list.ts";
import { filled, isObject } from "#runtime/schema/json-object.ts";
import { iconFrom } from "./described.ts";

export type Tools = Pick<Client<typeof ToolService>, "listTools" | "callTool">;

export type ToolScope = NonNullable<MessageInitShape<typeof ListToolsRequestSchema>["scope"]>;

export function scopeOfSession(sessionId: string): ToolScope {
  return { case: "session", value: { sessionId } };
}

/** All tools of an agent, or of a session, in one list: many clients read no second page. */
export function readTools(tools: Tools, scope: ToolScope, options: CallOptions) {
  return wholeList((pageToken) => tools.listTools({ scope, pageToken, pageSize: 1_000 }, options));
}

/** Names what a client is listed: equal for equal lists, at every gateway. */
export function digestOf(tools: readonly McpTool[]): string {
  return createHash("sha256").update(JSON.stringify(tools)).digest("base64url");
}

/** Those that may be called, by name. */
export function toolsFrom({ tools }: Pick<ListToolsResponse, "tools">): McpTool[] {
  return tools.filter(({ callable }) => callable).map(toolFrom);
}

function toolFrom({ modelName, tool }: ModelTool): McpTool {
  const {
    description = "",
    inputSchemaJson = "",
    outputSchemaJson = "",
    annotations,
    icons = [],
  }: Partial<Tool> = tool ?? {};
  const outputSchema = schemaFrom(outputSchemaJson);
  return {
    name: modelName,
    ...filled({ title: annotations?.title, description }),
    inputSchema: { ...schemaFrom(inputSchemaJson), type: "object" },
    // what is no object has no place in `structuredContent` before 2026-07-28
    ...(outputSchema?.type === "object" && { outputSchema: { ...outputSchema, type: "object" as const } }),
    ...(annotations && { annotations: annotationsFrom(annotations) }),
    ...filled({ icons: icons.map(iconFrom) }),
    ...(isRecorded(tool) && { execution: { taskSupport: "optional" as const } }),
  };
}

/** Whether each call of the tool is recorded, and can be asked for later by its id. */
export function isRecorded(tool: Pick<Tool, "effect" | "executionType"> | undefined): boolean {
  if (tool === undefined) return false;
  const { effect, executionType } = tool;
  const isAnsweredOutside = executionType === ExecutionType.EXTERNAL || executionType === ExecutionType.SPACE;
  return isAnsweredOutside || effect === Effect.AT_MOST_ONCE;
}

function schemaFrom(json: string): Record<string, unknown> | undefined {
  const schema: unknown = json === "" ? undefined : JSON.parse(json);
  return isObject(schema) ? schema : undefined;
}

function annotationsFrom(given: ToolAnnotations): McpAnnotations {
  const { title, readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = given;
  return filled({ title, readOnlyHint, destructiveHint, idempotentHint, openWorldHint });
}

/** What is here, for the model of the client. */
export function instructionsFrom(list: ListToolsResponse): string {
  const own = `The tools of the agent ${list.agent} of toolbus.`;
  const away = list.sources.filter(({ available }) => !available).map(({ source, reason }) => `${source} (${reason})`);
  const missing = away.length > 0 ? `Not available at the moment: ${away.join(", ")}.` : "";
  return [own, missing, instructionsOfSources(list, list.tools)].filter((text) => text !== "").join("\n\n");
}
