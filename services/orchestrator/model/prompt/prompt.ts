/**
 * Items of the conversation as a prompt that every provider takes.
 *
 * prompt-1  Each call is followed by its result, in the order of the calls: one that has none gets a result that says so.
 * prompt-2  What the model wrote in one turn is one assistant message, which ends with its calls.
 * prompt-3  No provider refuses it for what was written: names and ids fit, arguments are objects, nothing is nested too deeply, no
 *     text is blank, and no message ends in a thought.
 * prompt-4  No two calls have the same id, also where runs of one conversation gave the same one.
 * prompt-5  One system message stands first. Instructions that come later stand where they came, as a message of the user.
 * prompt-6  A result whose call is not in the turn before it becomes text: it is not passed over. An output without a result
 *     repeats the answer that its call has already.
 */

import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { type FunctionCallOutput, type Item, type Message, Role } from "#gen/toolbus/run/v1/run_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { textOfContent } from "#runtime/content/text.ts";
import {
  type AssistantPart,
  assistantPartFromItem,
  partForUser,
  resultInWords,
  resultPart,
  type ShownCall,
} from "./prompt-parts.ts";

export function promptFromItems(instructions: string, items: readonly Item[]): LanguageModelV4Prompt {
  const { first, rest } = apartFromInstructions(items);
  const system = [instructions, ...first].filter((text) => text.trim() !== "").join("\n\n");
  const prompt: LanguageModelV4Prompt = system === "" ? [] : [{ role: "system", content: system }];
  const shownIds = new Set<string>();
  let turn = emptyTurn();

  function closeTurn(): void {
    prompt.push(...messagesOfTurn(turn));
    turn = emptyTurn();
  }

  for (const { item } of rest) {
    if (item.case === "functionCallOutput") {
      takeOutput(turn, item.value);
      continue;
    }
    const isSpoken = item.case !== "message" || item.value.role === Role.ASSISTANT;
    if (!isSpoken || turn.isAnswered) closeTurn(); // prompt-2: a turn goes on until it is answered or somebody else speaks
    const shownId = item.case === "functionCall" ? unusedId(item.value.callId, shownIds) : "";
    if (item.case === "functionCall") turn.calls.push({ call: item.value, shownId });
    if (item.case === "message" && !isSpoken) prompt.push(messageForUser(item.value));
    const part = isSpoken ? assistantPartFromItem(item, shownId) : undefined;
    if (part !== undefined) turn.spoken.push(part);
  }
  closeTurn();
  return prompt;
}

/** prompt-5. */
function apartFromInstructions(items: readonly Item[]): { first: string[]; rest: readonly Item[] } {
  const begin = items.findIndex(({ item }) => item.case !== "message" || item.value.role !== Role.SYSTEM);
  const count = begin < 0 ? items.length : begin;
  const first = items
    .slice(0, count)
    .flatMap(({ item }) => (item.case === "message" ? [textOfContent(item.value.content)] : []));
  return { first, rest: items.slice(count) };
}

/** What the model said, and what it was answered. */
interface SpokenTurn {
  readonly spoken: AssistantPart[];
  readonly calls: ShownCall[];
  readonly results: Map<string, ToolResult>;
  /** prompt-6. */
  readonly strays: string[];
  isAnswered: boolean;
}

function emptyTurn(): SpokenTurn {
  return { spoken: [], calls: [], results: new Map(), strays: [], isAnswered: false };
}

function takeOutput(turn: SpokenTurn, { callId, result }: FunctionCallOutput): void {
  if (result === undefined) return;
  turn.isAnswered = true;
  if (turn.results.has(callId)) return; // the first result of a call counts
  if (turn.calls.some(({ call }) => call.callId === callId)) turn.results.set(callId, result);
  else turn.strays.push(resultInWords(callId, result)); // prompt-6
}

function messagesOfTurn({ spoken, calls, results, strays }: SpokenTurn): LanguageModelV4Message[] {
  const said = spoken.slice(0, spoken.findLastIndex(({ type }) => type !== "reasoning") + 1); // prompt-3
  return [
    ...(said.length > 0 ? [{ role: "assistant" as const, content: said }] : []),
    ...(calls.length > 0
      ? [{ role: "tool" as const, content: calls.map((call) => resultPart(call, results)) }] // prompt-1
      : []),
    ...strays.map(userMessage),
  ];
}

/** prompt-3, prompt-4. */
function unusedId(callId: string, used: Set<string>): string {
  const fitting = callId.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64) || "call";
  let id = fitting;
  for (let number = 2; used.has(id); number += 1) id = `${fitting.slice(0, 58)}-${number}`;
  used.add(id);
  return id;
}

/** prompt-5; files stand where they stood. */
function messageForUser({ role, content }: Message): LanguageModelV4Message {
  if (content.some(({ part }) => part.case === "file")) return { role: "user", content: content.flatMap(partForUser) };
  const text = textOfContent(content);
  return userMessage(role === Role.SYSTEM ? `[Further instructions]\n${text}` : text);
}

function userMessage(text: string): LanguageModelV4Message {
  return { role: "user", content: [{ type: "text", text }] };
}

/** As most providers want it: the user speaks first, also where the conversation was given without its beginning. */
export function begunByUser(prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
  const begin = prompt[0]?.role === "system" ? 1 : 0;
  if (prompt[begin]?.role === "user") return prompt;
  return prompt.toSpliced(begin, 0, userMessage("[The conversation begins here]"));
}
