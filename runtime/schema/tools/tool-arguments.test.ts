import { expect, test } from "vitest";
import { parseToolArguments } from "./tool-arguments.ts";

test("an empty text is no arguments", () => {
  expect(parseToolArguments("")).toEqual({});
  expect(parseToolArguments('{"a":[1]}')).toEqual({ a: [1] });
});

test.each(["{", "[]", "null", "1"])("%s is refused as the field that it came in", (text) => {
  expect(() => parseToolArguments(text)).toThrow(
    expect.objectContaining({
      code: "invalid_argument",
      fieldViolations: [{ field: "arguments_json", message: expect.stringMatching(/^is no JSON/) }],
    }),
  );
});
