import { create } from "@bufbuild/protobuf";
import type { CallToolResult } from "@modelcontextprotocol/client";
import { type ToolResult, ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { errorResult } from "#runtime/results/error-result.ts";

/**
 * What a server answered, as one JSON text: its structured content; else its text, as JSON if it is JSON, and as a string if
 * not (several texts are lines of one); else, where there is more than text, the whole content.
 */
export function resultFromAnswer(
  answer: Pick<CallToolResult, "content" | "structuredContent" | "isError">,
): ToolResult {
  const texts = textsOf(answer.content);
  if (answer.isError) return errorResult(errorTextOf(answer, texts));
  if (answer.structuredContent !== undefined) return okResult(JSON.stringify(answer.structuredContent));
  if (texts === undefined) return okResult(JSON.stringify({ content: answer.content }));
  const [only] = texts;
  if (texts.length === 1 && only !== undefined && isJson(only)) return okResult(only);
  return okResult(JSON.stringify(texts.join("\n")));
}

function okResult(outputJson: string): ToolResult {
  return create(ToolResultSchema, { outputJson });
}

function errorTextOf(
  answer: Pick<CallToolResult, "content" | "structuredContent">,
  texts: string[] | undefined,
): string {
  if (texts !== undefined && texts.length > 0) return texts.join("\n");
  if (answer.structuredContent !== undefined) return JSON.stringify(answer.structuredContent);
  return answer.content.length > 0 ? JSON.stringify(answer.content) : "the tool failed without saying why";
}

/** Undefined when there is anything but text. */
function textsOf(content: CallToolResult["content"]): string[] | undefined {
  const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  return texts.length === content.length ? texts : undefined;
}

/** The way in which a JSON text can begin: most texts are none, and an error that nobody reads costs more than the call. */
const JSON_START = /^\s*(?:[[{"\-\d]|true|false|null)/;

function isJson(text: string): boolean {
  if (!JSON_START.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
