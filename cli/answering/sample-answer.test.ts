import { expect, test } from "vitest";
import { sampleJson } from "./sample-answer.ts";

test.each([
  [
    { type: "object", properties: { approved: { type: "boolean" }, note: { type: "string" } }, required: ["approved"] },
    '{"approved":true}',
  ],
  [{ type: "object", properties: { size: { enum: ["small", "large"] } }, required: ["size"] }, '{"size":"small"}'],
  [
    {
      type: "object",
      properties: { n: { type: "integer", minimum: 3 }, s: { type: ["string", "null"] } },
      required: ["n", "s"],
    },
    '{"n":3,"s":"…"}',
  ],
  [{ properties: {} }, "{}"],
  [{ type: "array", items: {} }, "[]"],
  [{}, "JSON"],
  [true, "JSON"],
])("TOOL-9 an answer by %j may look like %s", (schema, expected) => {
  expect(sampleJson(JSON.stringify(schema))).toBe(expected);
});

test("TOOL-9 without a schema, or with none that can be read, it is any JSON", () => {
  expect([sampleJson(""), sampleJson("{")]).toEqual(["JSON", "JSON"]);
});
