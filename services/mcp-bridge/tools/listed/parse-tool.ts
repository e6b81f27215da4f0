import { create } from "@bufbuild/protobuf";
import {
  Effect,
  ExecutionType,
  type Tool,
  type ToolAnnotations,
  ToolAnnotationsSchema,
  ToolSchema,
} from "#gen/toolbus/tool/v1/tool_pb.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { iconsFrom } from "../icons.ts";
import { faultOfHeaders } from "./declared-headers.ts";

/** A tool of a server's list, or why it is not offered. */
export type ParsedTool = { kind: "tool"; tool: Tool } | { kind: "refused"; name: string; reason: string };

const MAX_NAME_LENGTH = 256;
const MAX_DESCRIPTION_LENGTH = 65_536;
const MAX_SCHEMA_LENGTH = 1_048_576;

/**
 * Each tool is looked at alone, so that a bad one hides no other. What a tool can do without is left out when it is bad. Where arguments
 * are sent as headers too (`hasHeaders`), they must be such as can be.
 */
export function parseTool(listed: unknown, { hasHeaders = false } = {}): ParsedTool {
  if (!isObject(listed)) return { kind: "refused", name: "", reason: "it is no object" };
  const shownName = typeof listed.name === "string" ? listed.name.slice(0, MAX_NAME_LENGTH) : "";
  try {
    return parseObject(listed, shownName, hasHeaders);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { kind: "refused", name: shownName, reason: "it is nested too deeply" };
  }
}

function parseObject(listed: Record<string, unknown>, shownName: string, hasHeaders: boolean): ParsedTool {
  const { description = "", inputSchema, outputSchema, annotations } = listed;
  const inputSchemaJson = isObject(inputSchema) ? JSON.stringify(inputSchema) : "";
  const outputSchemaJson = isObject(outputSchema) ? JSON.stringify(outputSchema) : "";
  const reason = faultOf(listed, inputSchemaJson) ?? (hasHeaders ? faultOfHeaders(inputSchema) : undefined);
  if (reason !== undefined) return { kind: "refused", name: shownName, reason };
  const hints = annotationsFrom(annotations, listed.title);
  const tool = create(ToolSchema, {
    name: shownName,
    description: typeof description === "string" ? description : "",
    inputSchemaJson,
    outputSchemaJson: outputSchemaJson.length <= MAX_SCHEMA_LENGTH ? outputSchemaJson : "",
    executionType: ExecutionType.MCP,
    effect: effectFrom(hints),
    ...(hints && { annotations: hints }),
    icons: iconsFrom(listed.icons),
  });
  return { kind: "tool", tool };
}

function faultOf(listed: Record<string, unknown>, inputSchemaJson: string): string | undefined {
  const { name, description = "", inputSchema } = listed;
  if (typeof name !== "string" || name === "") return "it has no name";
  if (name.length > MAX_NAME_LENGTH) return `its name is longer than ${MAX_NAME_LENGTH}`;
  if (typeof description !== "string" && description !== null) return "its description is no text";
  if ((description?.length ?? 0) > MAX_DESCRIPTION_LENGTH)
    return `its description is longer than ${MAX_DESCRIPTION_LENGTH}`;
  if (!isObject(inputSchema)) return "its inputSchema is no object";
  if (inputSchema.type !== undefined && inputSchema.type !== "object") return "its inputSchema is not of type object";
  if (inputSchemaJson.length > MAX_SCHEMA_LENGTH) return `its inputSchema is longer than ${MAX_SCHEMA_LENGTH}`;
  return undefined;
}

function annotationsFrom(annotations: unknown, title: unknown): ToolAnnotations | undefined {
  const given = isObject(annotations) ? annotations : {};
  const shownTitle = [given.title, title].find((text) => typeof text === "string");
  const hint = (name: string) => {
    const value = given[name];
    return typeof value === "boolean" ? { [name]: value } : {};
  };
  const hints = {
    ...hint("readOnlyHint"),
    ...hint("destructiveHint"),
    ...hint("idempotentHint"),
    ...hint("openWorldHint"),
  };
  if (shownTitle === undefined && Object.keys(hints).length === 0) return undefined;
  return create(ToolAnnotationsSchema, { title: typeof shownTitle === "string" ? shownTitle : "", ...hints });
}

function effectFrom(annotations: ToolAnnotations | undefined): Effect {
  if (annotations?.readOnlyHint) return Effect.PURE;
  if (annotations?.idempotentHint) return Effect.IDEMPOTENT;
  return Effect.AT_MOST_ONCE;
}
