/**
 * Items of the conversation as a prompt that every provider takes.
 *
 * P1  Each call is followed by its result, in the order of the calls: one that has none gets a result that says so.
 * P2  What the model wrote in one turn is one assistant message, which ends with its calls.
 * P3  No provider refuses it for what the model wrote: names fit, arguments are objects, no text is empty.
 * P4  No two calls have the same id, also where runs of one conversation gave the same one.
 */

import {
  isJSONObject,
  type JSONObject,
  type JSONValue,
  type LanguageModelV4Message,
  type LanguageModelV4Prompt,
  type LanguageModelV4ToolResultOutput,
  type SharedV4ProviderMetadata,
} from "@ai-sdk/provider";
import { type FunctionCall, type Item, Role } from "#gen/toolbus/run/v1/run_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Turn } from "../run/fold.ts";
import { itemsFromTurns } from "../run/view.ts";
import { namelessCall } from "./nameless-calls.ts";

/** P4. */
interface ShownCall {
  readonly call: FunctionCall;
  readonly shownId: string;
}

type AssistantPart = Extract<LanguageModelV4Message, { role: "assistant" }>["content"][number];

export function promptFromItems(instructions: string, items: readonly Item[]): LanguageModelV4Prompt {
  const prompt: LanguageModelV4Prompt = instructions === "" ? [] : [{ role: "system", content: instructions }];
  let spoken: AssistantPart[] = [];
  let calls: ShownCall[] = [];
  const shownIds = new Set<string>();
  const results = new Map<string, ToolResult>();

  function closeTurn(): void {
    if (spoken.length > 0) prompt.push({ role: "assistant", content: spoken });
    if (calls.length > 0) prompt.push({ role: "tool", content: calls.map((call) => resultPart(call, results)) }); // P1
    spoken = [];
    calls = [];
    results.clear();
  }

  for (const { item } of items) {
    if (item.case === "functionCallOutput") {
      if (item.value.result) results.set(item.value.callId, item.value.result);
      continue;
    }
    const isSpoken = item.case !== "message" || item.value.role === Role.ASSISTANT;
    if (!isSpoken || results.size > 0) closeTurn(); // P2: a turn goes on until it is answered or somebody else speaks
    const shownId = item.case === "functionCall" ? unusedId(item.value.callId, shownIds) : "";
    if (item.case === "functionCall") calls.push({ call: item.value, shownId });
    if (item.case === "message" && !isSpoken) prompt.push(messageFromText(item.value.role, item.value.text));
    const part = isSpoken ? assistantPartFromItem(item, shownId) : undefined;
    if (part !== undefined) spoken.push(part);
  }
  closeTurn();
  return prompt;
}

/** P4. */
function unusedId(callId: string, used: Set<string>): string {
  let id = callId;
  for (let number = 2; used.has(id); number += 1) id = `${callId}-${number}`;
  used.add(id);
  return id;
}

interface Said {
  readonly first: Turn | undefined;
  readonly count: number;
  readonly messages: LanguageModelV4Message[];
}

/** What was said up to a turn, by that turn; it moves on with the run. */
const saidByLastTurn = new WeakMap<Turn, Said>();

/**
 * The same for turns whose calls have their results, of a run that goes on. Each turn is put into words once, and what it adds
 * does not depend on how many went before.
 */
export function promptFromTurns(turns: readonly Turn[]): LanguageModelV4Prompt {
  const last = turns.at(-1);
  if (last === undefined) return [];
  const said = saidBefore(turns, turns.length) ?? saidBefore(turns, turns.length - 1);
  const messages = said?.messages ?? [];
  for (const turn of turns.slice(said?.count ?? 0)) messages.push(...promptFromItems("", itemsFromTurns([turn])));
  saidByLastTurn.set(last, { first: turns[0], count: turns.length, messages });
  return messages.slice();
}

function saidBefore(turns: readonly Turn[], count: number): Said | undefined {
  const last = turns[count - 1];
  const said = last && saidByLastTurn.get(last);
  if (last === undefined || said?.count !== count || said.first !== turns[0]) return undefined;
  saidByLastTurn.delete(last); // its messages are about to be another turn's
  return said;
}

function messageFromText(role: Role, text: string): LanguageModelV4Message {
  if (role === Role.SYSTEM) return { role: "system", content: text };
  return { role: "user", content: [{ type: "text", text }] };
}

function assistantPartFromItem(item: Item["item"], callId: string): AssistantPart | undefined {
  switch (item.case) {
    case "message": {
      const { text, providerMetadataJson } = item.value;
      return text === "" ? undefined : { type: "text", text, ...optionsFrom(providerMetadataJson) }; // P3
    }
    case "reasoning":
      return { type: "reasoning", text: item.value.text, ...optionsFrom(item.value.providerMetadataJson) };
    case "functionCall": {
      const { name, argumentsJson, providerMetadataJson } = item.value;
      const input = inputFromArguments(argumentsJson);
      const toolName = fittingName(name);
      return { type: "tool-call", toolCallId: callId, toolName, input, ...optionsFrom(providerMetadataJson) };
    }
    default:
      return undefined;
  }
}

/** P3: an object, whatever the model wrote. */
function inputFromArguments(argumentsJson: string): JSONObject {
  const input = parsedOr(argumentsJson.trim() === "" ? "{}" : argumentsJson, undefined);
  if (input === undefined) return { unreadable_arguments: argumentsJson };
  return isJSONObject(input) && !Array.isArray(input) ? input : { arguments: input };
}

/** P3: a name that a model made up is shown to it as far as providers take it. */
function fittingName(name: string): string {
  return name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64) || namelessCall;
}

/** What a provider said of a part by the way, which it wants back. */
function optionsFrom(metadataJson: string): { providerOptions?: SharedV4ProviderMetadata } {
  const providerOptions = parsedOr(metadataJson, undefined) as SharedV4ProviderMetadata | undefined;
  return providerOptions === undefined ? {} : { providerOptions };
}

function resultPart({ call, shownId }: ShownCall, results: ReadonlyMap<string, ToolResult>) {
  const result = results.get(call.callId);
  const output: LanguageModelV4ToolResultOutput =
    result === undefined
      ? { type: "error-text", value: "this call was not answered: its run ended before" }
      : outputFromResult(result);
  return { type: "tool-result" as const, toolCallId: shownId, toolName: fittingName(call.name), output };
}

function outputFromResult({ outputJson, isError }: ToolResult): LanguageModelV4ToolResultOutput {
  const value = parsedOr(outputJson, outputJson) ?? null;
  if (typeof value === "string") return { type: isError ? "error-text" : "text", value };
  return { type: isError ? "error-json" : "json", value };
}

function parsedOr(text: string, fallback: JSONValue | undefined): JSONValue | undefined {
  if (text === "") return fallback;
  try {
    return JSON.parse(text) as JSONValue;
  } catch {
    return fallback; // a model reads what a parser cannot
  }
}
