import { hasMoreValues, maxToolValues, tooMany } from "#runtime/schema/json/json-size.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import type { Answer } from "../../calls/answer.ts";
import { jsonFrom } from "../../calls/json-line.ts";
import { LEVELS } from "../../logs/log-line.ts";
import type { Ask, DescribedTool, FromModule } from "./messages.ts";
import { isEffect, isTimeout, isToolName } from "./module-form.ts";

/**
 * What a line of a module's process says; undefined for one that is none of its messages. The module itself may have written
 * it, so that each member is looked at, and no other one is taken.
 */
export function parseMessage(line: string): FromModule | undefined {
  const message = jsonFrom(line);
  if (!isObject(message)) return undefined;
  const { kind, id, askId, tools, initializes, reason, detail } = message;
  switch (kind) {
    case "initialized":
    case "pong":
    case "shut down":
      return { kind };
    case "described": {
      if (!Array.isArray(tools) || typeof initializes !== "boolean") return undefined;
      const described = tools.map(toolFrom).filter((tool) => tool !== undefined);
      return described.length === tools.length ? { kind, tools: described, initializes } : undefined;
    }
    case "refused":
      return isText(reason) && isText(detail) ? { kind, reason, detail } : undefined;
    case "fault":
      return isText(reason) ? { kind, reason } : undefined;
    case "log":
      return logFrom(message);
  }
  if (!isNumber(id)) return undefined;
  switch (kind) {
    case "answer": {
      const answer = answerFrom(message.answer);
      return answer && { kind, id, answer };
    }
    case "progress":
      return progressFrom(id, message);
    case "ask": {
      const ask = askFrom(message.ask);
      return ask && isNumber(askId) ? { kind, id, askId, ask } : undefined;
    }
  }
  return undefined;
}

function toolFrom(tool: unknown): DescribedTool | undefined {
  if (!isObject(tool)) return undefined;
  const { name, description, inputSchemaJson, outputSchemaJson, effect, timeoutMs } = tool;
  if (!isToolName(name) || !isText(description)) return undefined;
  if (!isText(inputSchemaJson) || !isObject(jsonFrom(inputSchemaJson))) return undefined;
  if (!isText(outputSchemaJson) || !(outputSchemaJson === "" || isObject(jsonFrom(outputSchemaJson)))) return undefined;
  if (effect !== undefined && !isEffect(effect)) return undefined;
  if (timeoutMs !== undefined && !isTimeout(timeoutMs)) return undefined;
  const told = { name, description, inputSchemaJson, outputSchemaJson };
  return { ...told, ...(effect && { effect }), ...(timeoutMs !== undefined && { timeoutMs }) };
}

function answerFrom(answer: unknown): Answer | undefined {
  if (!isObject(answer)) return undefined;
  const { kind, resultJson, error } = answer;
  if (kind === "error") return isText(error) ? { kind, error } : undefined;
  if (kind !== "result" || !isText(resultJson)) return undefined;
  if (hasMoreValues(resultJson, maxToolValues))
    return { kind: "error", error: `the result has ${tooMany(maxToolValues)}` };
  return isJson(resultJson) ? { kind, resultJson } : undefined;
}

function askFrom(ask: unknown): Ask | undefined {
  if (!isObject(ask)) return undefined;
  const { kind, name, argumentsJson, prompt, instructions, agent } = ask;
  if (kind === "list tools") return { kind };
  if (kind === "call tool") return isText(name) && isText(argumentsJson) ? { kind, name, argumentsJson } : undefined;
  if (kind !== "generate" || !isText(prompt) || !isText(instructions) || !isText(agent)) return undefined;
  return { kind, prompt, instructions, agent };
}

function progressFrom(id: number, { done, total, message }: Record<string, unknown>): FromModule | undefined {
  return isNumber(done) && isNumber(total) && isText(message)
    ? { kind: "progress", id, done, total, message }
    : undefined;
}

function logFrom({ id, level, message, fieldsJson }: Record<string, unknown>): FromModule | undefined {
  if (!isText(level) || !LEVELS.has(level) || !isText(message) || !isText(fieldsJson)) return undefined;
  if (fieldsJson !== "" && !isJson(fieldsJson)) return undefined;
  return { kind: "log", level, message, fieldsJson, ...(isNumber(id) && { id }) };
}

const isText = (value: unknown): value is string => typeof value === "string";
const isNumber = (value: unknown): value is number => Number.isFinite(value);
const isJson = (text: string): boolean => jsonFrom(text) !== undefined;
