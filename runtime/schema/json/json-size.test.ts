import { expect, test } from "vitest";
import { createValueCount, hasMoreValues, isTooDeep, maxLevels } from "./json-size.ts";

const nested = (levels: number, inside: string) => `${"[".repeat(levels)}${inside}${"]".repeat(levels)}`;
const brackets = "[{".repeat(maxLevels);

test.each([
  ["levels that are few enough", nested(maxLevels, "0"), false],
  ["one level more", nested(maxLevels + 1, "0"), true],
  ["brackets in a text", nested(1, JSON.stringify(brackets)), false],
  ["brackets after a quote in a text", nested(1, JSON.stringify(`"${brackets}`)), false],
  ["brackets after a backslash at a text's end", nested(1, `${JSON.stringify("\\")},${nested(maxLevels, "0")}`), true],
  ["brackets after a backslash and a quote in a text", nested(1, JSON.stringify(`\\"${brackets}`)), false],
  ["brackets in a text without an end", `["${brackets}`, false],
])("KIND-4 %s", (_, json, isDeep) => {
  expect(isTooDeep(json)).toBe(isDeep);
});

test("SEC-5 counts elements of lists, of which ten take as much as another value", () => {
  const list = (length: number) => `[${Array.from({ length }, () => 0).join()}]`;
  expect([hasMoreValues(list(101), 10), hasMoreValues(list(102), 10)]).toEqual([false, true]);
  expect([hasMoreValues(list(11), 10, 10), hasMoreValues(list(12), 10, 10)]).toEqual([false, true]);
});

test.each([
  ["objects, lists and members", '{"a":[{},{"b":1}]}', 6],
  ["what stands in a text", JSON.stringify(["{[:{[:", '\\":[']), 1],
  ["nothing behind a text without an end", '{"a', 1],
])("SEC-5 counts %s", (_, json, values) => {
  expect([hasMoreValues(json, values - 1), hasMoreValues(json, values)]).toEqual([true, false]);
  for (let cut = 0; cut <= json.length; cut += 1) {
    const isOver = (most: number) => {
      const isMore = createValueCount(most);
      return [json.slice(0, cut), json.slice(cut)].map((piece) => isMore(Buffer.from(piece))).at(-1);
    };
    expect([isOver(values - 1), isOver(values)]).toEqual([true, false]);
  }
});
