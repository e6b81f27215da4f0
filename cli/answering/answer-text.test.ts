import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ToolCallSchema } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { formOfAnswer, submissionFromText } from "./answer-text.ts";

const object = (properties: object) => JSON.stringify({ type: "object", properties });
const flag = object({ approved: { type: "boolean" } });
const text = object({ name: { type: "string" } });
const both = object({ approved: { type: "boolean" }, why: { type: "string" } });

test.each([
  ["yes", flag, '{"approved":true}'],
  ["N", flag, '{"approved":false}'],
  ['{"approved":true}', flag, '{"approved":true}'],
  ["Ada Lovelace", text, '{"name":"Ada Lovelace"}'],
  ['"Ada"', text, '{"name":"Ada"}'],
  ["7", object({ count: { type: "integer" } }), '{"count":7}'],
  ["yes", '{"type":"boolean"}', "true"],
  ["sun", '{"type":"string"}', '"sun"'],
  ["sun", "", "sun"],
  ["", flag, "{}"],
])("PROD-2 %j answers %s with %s", (typed, outputSchemaJson, resultJson) => {
  const { outcome, submissionId } = submissionFromText(typed, create(ToolCallSchema, { outputSchemaJson }));
  expect(outcome).toEqual({ case: "resultJson", value: resultJson });
  expect(submissionId).not.toBe("");
});

test("PROD-2 an answer of several parts is JSON as it stands, and what is none is refused by whoever takes it", () => {
  const call = create(ToolCallSchema, { outputSchemaJson: both });
  expect(submissionFromText("yes", call).outcome.value).toBe("yes");
  const one = create(ToolCallSchema, { outputSchemaJson: object({ count: { type: "integer" } }) });
  expect(() => submissionFromText("many", one)).toThrow(SyntaxError);
});

test.each([
  [flag, "yes or no"],
  [text, "text"],
  [both, "JSON"],
  ['{"type":"string"}', "text"],
  ["", "JSON"],
])("PROD-2 what %s takes is %s", (outputSchemaJson, form) => {
  expect(formOfAnswer(create(ToolCallSchema, { outputSchemaJson }))).toBe(form);
});

test("PROD-2 an exclamation mark says why not, and declines a question", () => {
  const call = create(ToolCallSchema, { outputSchemaJson: flag });
  expect(submissionFromText("! not today", call).outcome).toEqual({ case: "error", value: "not today" });
  const asked = { requestedSchema: { type: "object", properties: { day: { type: "string" } } } };
  const question = create(ToolCallSchema, { question: {}, argumentsJson: JSON.stringify(asked) });
  expect(submissionFromText("! no", question).outcome.value).toBe('{"action":"decline"}');
  expect(submissionFromText("Monday", question).outcome.value).toBe('{"action":"accept","content":{"day":"Monday"}}');
});
