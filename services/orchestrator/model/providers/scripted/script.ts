/**
 * The file of a scripted model: `{"turns":[{"text","reasoning","calls":[{"name","arguments"}],"delayMs","deltaDelayMs","finishReason","tokens"}]}`.
 *
 * The prompt says which turn is due. With `deltaDelayMs`, texts and arguments come word by word. Strings may hold `{{input}}` (the
 * run's last user text), `{{prompt}}` (the model's prompt as JSON), and `{{result.0.path}}` or `{{result.<tool>.path}}` (results of the
 * run so far); a string that is one placeholder becomes the value itself. `argumentsText` in place of `arguments` is written as it
 * stands; `id` names the call.
 */

import { isJSONObject, type JSONValue } from "@ai-sdk/provider";
import { z } from "zod";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { refuseModel } from "../refuse-model.ts";

const callSchema = z.strictObject({
  name: z.string().min(1),
  arguments: z.custom<JSONValue>().optional(),
  /** Arguments exactly as they are to be written, for a model that writes what is not JSON. */
  argumentsText: z.string().optional(),
  id: z.string().min(1).optional(),
});

const count = z.int().min(0).optional();

const turnSchema = z.strictObject({
  text: z.string().optional(),
  reasoning: z.string().optional(),
  calls: z.array(callSchema).optional(),
  /** Silence before the answer. */
  delayMs: z.number().min(0).optional(),
  /** Silence before each piece of text but the first. */
  deltaDelayMs: z.number().min(0).optional(),
  finishReason: z.enum(["stop", "length", "content-filter", "tool-calls"]).optional(),
  /** Of the tokens of the turn, those that a provider counts apart. */
  tokens: z.strictObject({ cacheRead: count, cacheWrite: count, reasoning: count }).optional(),
});

const scriptSchema = z.object({ description: z.string().optional(), turns: z.array(turnSchema).min(1) });

export type Script = z.infer<typeof scriptSchema>;
export type ScriptTurn = z.infer<typeof turnSchema>;

export function parseScript(name: string, text: string): Script {
  const parsed = scriptSchema.safeParse(jsonFromText(name, text));
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(({ path, message }) => `${path.join(".") || "the file"}: ${message}`);
  return refuseModel("script_invalid", `the script ${name} cannot be replayed: ${faults.join("; ")}`);
}

function jsonFromText(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    return refuseModel("script_invalid", `the script ${name} is not JSON: ${messageFromUnknown(error)}`);
  }
}

/** What a script may refer to. */
export interface ScriptContext {
  /** What the model was asked with. */
  readonly prompt: JSONValue;
  /** The last user text of the run. */
  readonly input: string;
  /** The results of the run so far, in order. */
  readonly results: readonly { readonly tool: string; readonly value: JSONValue }[];
}

const placeholder = /\{\{\s*([^{}]+?)\s*\}\}/g;

/** Fills the placeholders of every string in the value. A string that is one placeholder becomes what it stands for. */
export function fillPlaceholders(value: JSONValue, context: ScriptContext): JSONValue {
  if (typeof value === "string") return filledText(value, context);
  if (Array.isArray(value)) return value.map((element) => fillPlaceholders(element, context));
  if (!isJSONObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, element]) => [key, fillPlaceholders(element ?? null, context)]),
  );
}

function filledText(text: string, context: ScriptContext): JSONValue {
  const whole = /^\{\{\s*([^{}]+?)\s*\}\}$/.exec(text)?.[1];
  if (whole !== undefined) return valueOfPlaceholder(whole, context);
  return text.replaceAll(placeholder, (_, name: string) => textFromValue(valueOfPlaceholder(name, context)));
}

export function textFromValue(value: JSONValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** `input`, `prompt`, or `result.<number or tool>` followed by a path of keys and indexes. */
function valueOfPlaceholder(name: string, context: ScriptContext): JSONValue {
  if (name === "input") return context.input;
  if (name === "prompt") return context.prompt;
  const [root, which = "", ...path] = name.split(".");
  if (root !== "result") return unknownPlaceholder(name);
  const found = /^\d+$/.test(which)
    ? context.results[Number(which)]
    : context.results.findLast(({ tool }) => tool === which);
  if (found === undefined) return unknownPlaceholder(name);
  let value: JSONValue | undefined = found.value;
  for (const key of path) value = memberOf(value, key);
  return value === undefined ? unknownPlaceholder(name) : value;
}

function memberOf(value: JSONValue | undefined, key: string): JSONValue | undefined {
  if (Array.isArray(value)) return value[Number(key)];
  return typeof value === "object" && value !== null && Object.hasOwn(value, key)
    ? (value as { [key: string]: JSONValue | undefined })[key]
    : undefined;
}

function unknownPlaceholder(name: string): never {
  return refuseModel("script_placeholder_unknown", `the script's {{${name}}} stands for nothing in this run`);
}
