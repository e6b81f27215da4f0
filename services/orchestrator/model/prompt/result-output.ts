import type { JSONValue } from "@ai-sdk/provider";
import type { ResultContent, ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { getOrInsertComputed } from "#runtime/collections/get-or-insert-computed.ts";
import { jsonOfBlock, jsonOfBlocks } from "#runtime/results/content.ts";
import { losesDigits } from "#runtime/schema/json/exact-json.ts";
import { isTooDeep } from "#runtime/schema/json/json-size.ts";
import { fieldsOf } from "#runtime/schema/json-object.ts";
import type { Output, OutputPart } from "../providers/tool-outputs.ts";

/** Under which a file's reference stands that is a stored one of ours. */
export const STORED = "toolbus";

/** What models read as images. */
const IMAGES: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

const outputs = new WeakMap<ToolResult, Output>();

/** Converted once, as the prompt is made at each turn. */
export function outputFromResult(result: ToolResult): Output {
  return getOrInsertComputed(outputs, result, convertedResult);
}

function convertedResult(result: ToolResult): Output {
  const { outputJson, isError, content } = result;
  if (content.length > 0) return outputFromBlocks(result);
  const value = parsedOr(outputJson, outputJson) ?? null;
  if (typeof value === "string") return { type: isError ? "error-text" : "text", value };
  if (!isError && losesDigits(outputJson)) return { type: "text", value: outputJson };
  return { type: isError ? "error-json" : "json", value };
}

/** A text as it is, blocks as a model without images reads them, anything else as JSON. */
export function textFromResult(result: ToolResult): string {
  const output = outputFromResult(result);
  if (output.type === "content") return textOfParts(output.value);
  return output.type === "text" ? output.value : result.outputJson;
}

/** Its text, where the blocks do not say it too, and each block: text as text, images as files, a reference to the rest. */
function outputFromBlocks({ outputJson, isError, content }: ToolResult): Output {
  const own: OutputPart[] = isSaidBy(content, outputJson) ? [] : [{ type: "text", text: outputJson }];
  const value = [...own, ...content.map(partFromBlock)];
  return isError ? { type: "error-text", value: textOfParts(value) } : { type: "content", value };
}

function isSaidBy(content: readonly ResultContent[], outputJson: string): boolean {
  if (outputJson === jsonOfBlocks(content)) return true;
  const texts = content.map((block) => textOfBlock(block));
  if (texts.includes(undefined)) return false;
  return outputJson === JSON.stringify(texts.join("\n")) || (texts.length === 1 && texts[0] === outputJson);
}

function textOfBlock({ blockJson, storedReference }: ResultContent): string | undefined {
  const { type, text } = fieldsOf(parsedOr(blockJson, undefined));
  return storedReference === "" && type === "text" && typeof text === "string" ? text : undefined;
}

function partFromBlock(content: ResultContent): OutputPart {
  const text = textOfBlock(content);
  if (text !== undefined) return { type: "text", text };
  const { blockJson, storedReference } = content;
  const { mimeType, resource } = fieldsOf(parsedOr(blockJson, undefined));
  const mediaType = mimeType ?? fieldsOf(resource).mimeType;
  if (storedReference === "" || typeof mediaType !== "string" || !IMAGES.has(mediaType))
    return { type: "text", text: jsonOfBlock(content) };
  const reference = { [STORED]: storedReference };
  return { type: "file", mediaType, data: { type: "reference", reference }, filename: jsonOfBlock(content) };
}

/** For who reads text alone. */
export function textOfParts(parts: readonly OutputPart[]): string {
  return parts.map((part) => (part.type === "text" ? part.text : wordsOfFile(part))).join("\n");
}

/** The file's name holds what is told in its place. */
export function wordsOfFile(part: OutputPart): string {
  return part.type === "file" ? (part.filename ?? part.mediaType) : "";
}

export function parsedOr(text: string, fallback: JSONValue | undefined): JSONValue | undefined {
  if (text === "" || isTooDeep(text)) return fallback; // providers walk through what they are given
  try {
    return JSON.parse(text) as JSONValue;
  } catch {
    return fallback; // a model reads what a parser cannot
  }
}
