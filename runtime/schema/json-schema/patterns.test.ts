import { expect, test } from "vitest";
import { computedMs } from "../../time/testing/machine-time.ts";
import { isPlainPattern } from "../cost/cost.ts";
import { bombText as bomb, patternBombs } from "./testing/bombs.ts";
import { createValidator } from "./validator.ts";

const validator = createValidator();
const schemaOf = (property: object) =>
  JSON.stringify({ type: "object", properties: { text: property }, additionalProperties: false });
const check = async (property: object, text: unknown, by = "alice") =>
  validator.faultOfArguments(schemaOf(property), JSON.stringify({ text }), by);

test.each([
  ["^[a-z]+$", "abc", "ABC"],
  ["^(ab|cd)+$", "abcdab", "abc"],
  ["^\\d{3}-\\d{4}$", "123-4567", "123"],
  ["(.)\\1", "aa", "ab"],
  ["(?<!x)y", "ay", "xy"],
  ["^\\p{Lu}", "Ä", "ä"],
])("patterns mean what they mean, wherever they are matched: %s", async (pattern, good, bad) => {
  expect(await check({ pattern }, good)).toBeUndefined();
  expect(await check({ pattern }, bad)).toBe(`arguments.text: must match pattern "${pattern}"`);
});

test.each([...patternBombs])(
  "SEC-5 KIND-2 %s that backtracks without end takes no time of the thread that asks",
  async (_, property, text) => {
    let told: string | undefined;
    const ms = await computedMs(async () => {
      told = await check(property, text);
    });
    expect(told).toBe("arguments cannot be checked: it takes longer than 500 ms");
    expect(ms).toBeLessThan(300); // else 500 at least; a collection of garbage may fall into it
    expect(await check({ pattern: "^(ab)+$" }, "abab")).toBeUndefined(); // the next one has its own time
  },
);

test("SEC-5 patterns of one caller that are slow keep another's no longer than one of them takes", async () => {
  const slow = Promise.all(Array.from({ length: 12 }, () => check({ pattern: "^(a+)+$" }, bomb, "mallory")));
  let isOver = false;
  void slow.then(() => {
    isOver = true;
  });
  for (let n = 0; n < 5; n++) expect(await check({ pattern: "^(ab)+$" }, "abab", "alice")).toBeUndefined();
  expect(isOver).toBe(false);
  expect((await slow).every((fault) => fault !== undefined)).toBe(true);
});

test.each(["^[a-z]+$", "^https?://", "^\\d{3}-\\d{4}$", "^(low|high)$", "^@[a-z]"])("%s is plain", (pattern) => {
  expect(isPlainPattern(pattern)).toBe(true);
});

test.each([
  "(a+)+",
  "a*a*",
  "(a)\\1",
  "(?=a)",
  "(a|b)(c|d)",
  "a?a?a?a?a?a?",
  "a{1,9}b{1,9}",
  "^\\p{L}+$",
  "x".repeat(301),
])("%s is not plain", (pattern) => {
  expect(isPlainPattern(pattern)).toBe(false);
});
