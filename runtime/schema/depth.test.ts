import { expect, test } from "vitest";
import { isTooDeep, maxLevels } from "./depth.ts";

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
