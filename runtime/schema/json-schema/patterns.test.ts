import { expect, test } from "vitest";
import { createValidator } from "./validator.ts";

const validator = createValidator();
const schemaOf = (property: object) =>
  JSON.stringify({ type: "object", properties: { text: property }, additionalProperties: false });
const bomb = `${"a".repeat(60)}!`;

function check(property: object, text: unknown) {
  const startedAt = performance.now();
  const validation = validator.parseArguments(schemaOf(property), JSON.stringify({ text }));
  return { validation, tookMs: performance.now() - startedAt };
}

test.each([
  ["^[a-z]+$", "abc", "ABC"],
  ["^(ab|cd)+$", "abcdab", "abc"],
  ["^\\d{3}-\\d{4}$", "123-4567", "123"],
  ["(.)\\1", "aa", "ab"],
  ["^\\p{Lu}", "Ä", "ä"],
])("patterns mean what they mean: %s", (pattern, good, bad) => {
  expect(check({ pattern }, good).validation.kind).toBe("valid");
  expect(check({ pattern }, bad).validation).toMatchObject({
    message: `arguments.text: must match pattern "${pattern}"`,
  });
});

test.each([
  ["a pattern", { pattern: "^(a+)+$" }, bomb],
  ["an alternative", { pattern: "^(a|a?)+$" }, bomb],
  ["a back reference", { pattern: "^(a+)\\1*\\1*\\1*\\1*b$" }, "a".repeat(3_000)],
  ["many patterns, each in its time", { items: { pattern: "^(a+)+$" } }, Array(200).fill(`${"a".repeat(20)}!`)],
  ["names of properties", { patternProperties: { "^(a+)+$": {} } }, { [bomb]: 1 }],
])("KIND-2 %s that backtracks without end keeps nobody waiting, and is said to be too slow", (_, property, text) => {
  const { validation, tookMs } = check(property, text);
  expect(validation).toMatchObject({ kind: "invalid", message: expect.stringMatching(/takes longer than 200 ms/) });
  expect(tookMs).toBeLessThan(3_000);
  expect(check({ pattern: "^(ab)+$" }, "abab").validation.kind).toBe("valid"); // the next one has its own time
});
