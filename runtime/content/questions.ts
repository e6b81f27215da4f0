import type { ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { fieldsOf, jsonFrom } from "../schema/json-object.ts";

/** Whether a person is to answer a call that waits; else a program that watches for its tool. */
export function isForPeople(call: Pick<ToolCall, "question" | "executionType">): boolean {
  return call.question !== undefined || call.executionType === ExecutionType.SPACE;
}

export interface Question {
  /** What is asked, in words; empty where the arguments say it all. */
  readonly message: string;
  /** An address that the person is to open instead of a form; empty if none. */
  readonly url: string;
  /** Of the answer, as JSON Schema. */
  readonly schemaJson: string;
}

/** What a person is asked by a call. */
export function questionOf({
  question,
  argumentsJson,
  outputSchemaJson,
}: Pick<ToolCall, "question" | "argumentsJson" | "outputSchemaJson">): Question {
  const text = (value: unknown) => (typeof value === "string" ? value : "");
  if (question === undefined) return { message: "", url: "", schemaJson: outputSchemaJson };
  const { message, url, requestedSchema } = fieldsOf(jsonFrom(argumentsJson));
  return { message: text(message), url: text(url), schemaJson: JSON.stringify(requestedSchema ?? { properties: {} }) };
}
