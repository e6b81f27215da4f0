/**
 * A model that replays a file: for demonstrations and tests, where what is said has to be known beforehand.
 * It holds no state: which turn is due follows from the prompt, so that it goes on where a run goes on, in any process.
 */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type {
  JSONValue,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolResultPart,
} from "@ai-sdk/provider";
import { delay } from "#runtime/time/delay.ts";
import { streamingModel } from "../late-model.ts";
import { refuseModel } from "../refuse-model.ts";
import { fillPlaceholders, parseScript, type ScriptContext, type ScriptTurn, textFromValue } from "./script.ts";

/** The model of a file in the directory of scripts, named with or without `.json`. */
export function createScriptedModel(directory: string, name: string): LanguageModelV4 {
  async function open(options: LanguageModelV4CallOptions): Promise<AsyncGenerator<LanguageModelV4StreamPart>> {
    const script = parseScript(name, await readScript(directory, name));
    const { turnIndex, context } = positionFromPrompt(options.prompt);
    const turn = script.turns[turnIndex];
    if (turn === undefined)
      return refuseModel("script_ran_out", `the script ${name} ran out: it has no turn ${turnIndex + 1}`);
    const { abortSignal: signal, maxOutputTokens, stopSequences } = options;
    return partsOfTurn({ turn, turnIndex, context, signal, maxOutputTokens, stopSequences });
  }

  return streamingModel({ provider: "scripted", modelId: name }, async (options) => ({
    stream: ReadableStream.from(await open(options)),
  }));
}

async function readScript(directory: string, name: string): Promise<string> {
  if (!/^[A-Za-z0-9_-]+(\.json)?$/.test(name))
    return refuseModel("script_invalid", `${JSON.stringify(name)} is not the name of a script`);
  const file = name.endsWith(".json") ? name : `${name}.json`;
  return readFile(join(directory, file), "utf8").catch((cause) =>
    refuseModel("script_missing", `there is no script ${file} in ${directory}`, cause),
  );
}

/** The run begins after the last assistant's message that a user's message follows, but for one of files behind results. */
function positionFromPrompt(prompt: LanguageModelV4Prompt): { turnIndex: number; context: ScriptContext } {
  const lastUserIndex = prompt.findLastIndex(
    ({ role, content }, n) =>
      role === "user" && (prompt[n - 1]?.role !== "tool" || content.some(({ type }) => type === "text")),
  );
  const sinceInput = prompt.slice(lastUserIndex + 1);
  const results = sinceInput.flatMap(({ role, content }) =>
    role === "tool" ? content.flatMap((part) => (part.type === "tool-result" ? [resultFromPart(part)] : [])) : [],
  );
  const turnIndex = sinceInput.filter(({ role }) => role === "assistant").length;
  const input = textOfMessage(prompt[lastUserIndex]);
  return { turnIndex, context: { prompt: prompt as unknown as JSONValue, input, results } };
}

function textOfMessage(message: LanguageModelV4Prompt[number] | undefined): string {
  if (message?.role !== "user") return "";
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

function resultFromPart({ toolName, output }: LanguageModelV4ToolResultPart): { tool: string; value: JSONValue } {
  return { tool: toolName, value: "value" in output ? (output.value as JSONValue) : null };
}

interface Replay {
  turn: ScriptTurn;
  turnIndex: number;
  context: ScriptContext;
  signal: AbortSignal | undefined;
  maxOutputTokens: number | undefined;
  stopSequences: readonly string[] | undefined;
}

async function* partsOfTurn(replay: Replay): AsyncGenerator<LanguageModelV4StreamPart> {
  const { turn, turnIndex, context, signal, maxOutputTokens, stopSequences = [] } = replay;
  yield { type: "stream-start", warnings: [] };
  if (turn.delayMs) await delay(turn.delayMs, signal);
  if (turn.reasoning) yield* block("reasoning", turn.reasoning, replay);
  const said = turn.text === undefined ? "" : textFromValue(fillPlaceholders(turn.text, context));
  const whole = stopSequences.reduce((text, stop) => text.split(stop, 1).join(), said);
  const text = piecesFromText(whole).slice(0, maxOutputTokens).join("");
  const isCutOff = text.length < whole.length;
  if (text) yield* block("text", text, replay);
  const calls = isCutOff ? [] : (turn.calls ?? []);
  for (const [index, call] of calls.entries()) {
    const id = call.id ?? `call_${turnIndex + 1}_${index + 1}`;
    const input = call.argumentsText ?? JSON.stringify(fillPlaceholders(call.arguments ?? {}, context));
    yield { type: "tool-input-start", id, toolName: call.name };
    for (const [position, piece] of (turn.deltaDelayMs ? piecesFromText(input) : [input]).entries()) {
      if (position > 0) await delay(turn.deltaDelayMs ?? 0, signal);
      yield { type: "tool-input-delta", id, delta: piece };
    }
    yield { type: "tool-input-end", id };
    yield { type: "tool-call", toolCallId: id, toolName: call.name, input };
  }
  const unified = isCutOff ? "length" : (turn.finishReason ?? (calls.length > 0 ? "tool-calls" : "stop"));
  yield {
    type: "finish",
    finishReason: { unified, raw: unified },
    usage: usageFromLengths(context, text, turn.tokens),
  };
}

async function* block(kind: "text" | "reasoning", text: string, replay: Replay) {
  yield { type: `${kind}-start` as const, id: kind };
  for (const [index, piece] of piecesFromText(text).entries()) {
    if (index > 0 && replay.turn.deltaDelayMs) await delay(replay.turn.deltaDelayMs, replay.signal);
    replay.signal?.throwIfAborted();
    yield { type: `${kind}-delta` as const, id: kind, delta: piece };
  }
  yield { type: `${kind}-end` as const, id: kind };
}

/** Words, each with the blanks that follow it. */
function piecesFromText(text: string): string[] {
  return text.match(/\s*\S+\s*/g) ?? [text];
}

/** A word counts as a token, so that budgets can be tried. */
function usageFromLengths(context: ScriptContext, text: string, apart: ScriptTurn["tokens"]) {
  const input = piecesFromText(context.input).length;
  const output = piecesFromText(text).length;
  return {
    inputTokens: { total: input, noCache: input, cacheRead: apart?.cacheRead, cacheWrite: apart?.cacheWrite },
    outputTokens: { total: output, text: output, reasoning: apart?.reasoning },
  };
}
