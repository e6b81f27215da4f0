import { type CallToolResult, type ContentBlock, isSpecType } from "@modelcontextprotocol/server";
import type { CallToolResult as Answer } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { isObject } from "#runtime/schema/json-object.ts";

/**
 * A result of a call as MCP clients read it: the text as it is in the contract, an object as `structuredContent` too, and the
 * content of an MCP server as that server sent it, pictures and all. One that is stored elsewhere is a text that tells of it: it
 * has not the form that the tool promises.
 */
export function resultFrom({ outputJson, isError, storedReference }: Answer): CallToolResult {
  const output: unknown = JSON.parse(outputJson || "null");
  if (isError) return { content: [textBlock(errorTextOf(output) ?? outputJson)], isError: true };
  const content = contentOf(output);
  if (content !== undefined) return { content };
  const text = textBlock(typeof output === "string" ? output : outputJson);
  return isObject(output) && storedReference === ""
    ? { content: [text], structuredContent: output }
    : { content: [text] };
}

function textBlock(text: string): ContentBlock {
  return { type: "text", text };
}

/** KIND-4 */
function errorTextOf(output: unknown): string | undefined {
  return isObject(output) && typeof output.error === "string" ? output.error : undefined;
}

/** The content of an MCP server that is more than text is passed on under this one name. */
function contentOf(output: unknown): ContentBlock[] | undefined {
  if (!isObject(output) || Object.keys(output).length !== 1 || !Array.isArray(output.content)) return undefined;
  const blocks: unknown[] = output.content;
  return blocks.every((block) => isSpecType.ContentBlock(block)) ? (blocks as ContentBlock[]) : undefined;
}
