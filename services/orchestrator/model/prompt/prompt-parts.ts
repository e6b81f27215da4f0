/** Items of the conversation as parts of messages that every provider takes, whatever a model or a client wrote. */

import {
  isJSONObject,
  type JSONObject,
  type LanguageModelV4Message,
  type LanguageModelV4ToolResultOutput,
  type SharedV4ProviderMetadata,
} from "@ai-sdk/provider";
import type { ContentPart, File } from "#gen/toolbus/content/v1/content_pb.ts";
import type { FunctionCall, Item } from "#gen/toolbus/run/v1/run_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { getOrInsertComputed } from "#runtime/collections/get-or-insert-computed.ts";
import { textOfContent } from "#runtime/content/text.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { namelessCall } from "../providers/openai-compatible/call-deltas.ts";
import { outputFromResult, parsedOr } from "./result-output.ts";

/** A call under the id that it has in the prompt. */
export interface ShownCall {
  readonly call: FunctionCall;
  readonly shownId: string;
}

export type AssistantPart = Extract<LanguageModelV4Message, { role: "assistant" }>["content"][number];

export function assistantPartFromItem(item: Item["item"], callId: string): AssistantPart | undefined {
  switch (item.case) {
    case "message": {
      const { content, providerMetadataJson } = item.value;
      const text = textOfContent(content);
      return text.trim() === "" ? undefined : { type: "text", text, ...optionsFrom(providerMetadataJson) };
    }
    case "reasoning":
      return { type: "reasoning", text: item.value.text, ...optionsFrom(item.value.providerMetadataJson) };
    case "functionCall": {
      const { name, providerMetadataJson } = item.value;
      const input = getOrInsertComputed(inputs, item.value, inputOfCall);
      const toolName = fittingName(name);
      return { type: "tool-call", toolCallId: callId, toolName, input, ...optionsFrom(providerMetadataJson) };
    }
    default:
      return undefined;
  }
}

type UserPart = Extract<LanguageModelV4Message, { role: "user" }>["content"][number];

const files = new WeakMap<File, UserPart>();

export function partForUser({ part }: ContentPart): UserPart[] {
  if (part.case === "text") return part.value.trim() === "" ? [] : [{ type: "text", text: part.value }];
  return part.case === "file" ? [getOrInsertComputed(files, part.value, filePart)] : [];
}

/** As base64, which is logged and counted as the text that it is. */
function filePart({ mediaType, filename, source }: File): UserPart {
  const url = source.case === "url" ? { type: "url" as const, url: new URL(source.value) } : undefined;
  const data = url ?? { type: "data" as const, data: Buffer.from(source.value as Uint8Array).toString("base64") };
  return { type: "file", mediaType, data, ...(filename !== "" && { filename }) };
}

const inputs = new WeakMap<FunctionCall, JSONObject>();

/** An object, whatever the model wrote. */
function inputOfCall({ argumentsJson }: FunctionCall): JSONObject {
  const input = parsedOr(argumentsJson.trim() === "" ? "{}" : argumentsJson, undefined);
  if (input === undefined) return { unreadable_arguments: argumentsJson };
  return isObject(input) ? input : { arguments: input };
}

/** A name that a model made up is shown to it as far as providers take it. */
function fittingName(name: string): string {
  return name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64) || namelessCall;
}

/** What a provider said of a part by the way, which it wants back. */
function optionsFrom(metadataJson: string): { providerOptions?: SharedV4ProviderMetadata } {
  const metadata = parsedOr(metadataJson, undefined);
  const isMetadata = isJSONObject(metadata) && [metadata, ...Object.values(metadata)].every(isObject);
  return isMetadata ? { providerOptions: metadata as SharedV4ProviderMetadata } : {};
}

export function resultPart({ call, shownId }: ShownCall, results: ReadonlyMap<string, ToolResult>) {
  const result = results.get(call.callId);
  const output: LanguageModelV4ToolResultOutput =
    result === undefined
      ? { type: "error-text", value: "this call was not answered: its run ended before" }
      : outputFromResult(result);
  return { type: "tool-result" as const, toolCallId: shownId, toolName: fittingName(call.name), output };
}

/** A result that stands beside no call. */
export function resultInWords(callId: string, result: ToolResult | undefined): string {
  return `[Tool Result] (callId: ${callId}) ${result?.outputJson ?? ""}`;
}
