import type { ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { questionOf } from "#runtime/content/questions.ts";
import type { Submission } from "#runtime/results/submission.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { submissionOf } from "./submission.ts";

/**
 * What somebody typed as the answer to a call: JSON, or `!` and why not. Where the answer has one property, or is no object, the value
 * alone will do: yes and no for a boolean, the words themselves for a text.
 */
export function submissionFromText(text: string, call: ToolCall): Submission {
  const typed = text.trim();
  if (typed.startsWith("!")) {
    if (call.question === undefined) return submissionOf("", typed.slice(1).trim());
    return submissionOf('{"action":"decline"}', undefined);
  }
  const answer = jsonFromText(typed, questionOf(call).schemaJson);
  return submissionOf(call.question === undefined ? answer : `{"action":"accept","content":${answer}}`, undefined);
}

/** What to type. */
export function formOfAnswer(call: ToolCall): string {
  const schema: unknown = JSON.parse(questionOf(call).schemaJson || "{}");
  const properties = isObject(schema) && isObject(schema.properties) ? Object.values(schema.properties) : [];
  const only = properties.length === 0 ? schema : properties.length === 1 ? properties[0] : undefined;
  const type = isObject(only) ? only.type : undefined;
  return type === "boolean" ? "yes or no" : type === "string" ? "text" : "JSON";
}

function jsonFromText(typed: string, schemaJson: string): string {
  if (typed === "") return "{}";
  const schema: unknown = JSON.parse(schemaJson || "{}");
  if (typed.startsWith("{") || !isObject(schema)) return typed;
  const [only, ...others] = Object.entries(isObject(schema.properties) ? schema.properties : {});
  if (only === undefined) return valueFromText(typed, schema);
  if (others.length > 0) return typed;
  return JSON.stringify({ [only[0]]: JSON.parse(valueFromText(typed, only[1])) });
}

function valueFromText(typed: string, schema: unknown): string {
  const type = isObject(schema) ? schema.type : undefined;
  if (type === "boolean" && /^(y|yes|n|no)$/i.test(typed)) return String(/^y/i.test(typed));
  if (type === "string" && !typed.startsWith('"')) return JSON.stringify(typed);
  return typed;
}
