import { expect, test } from "vitest";
import { blocksOf, hasBegunAsPrinted, isAsPrinted, withIds } from "./page.ts";

test("PROD-1 a page is read block by block", () => {
  const page =
    "# A\n```json a/b.json\n{}\n```\nand\n```sh background\nup\n```\n```text\nit is up\n```\n```sh\nrun\n```\n";
  expect(blocksOf(page)).toEqual([
    { kind: "file", path: "a/b.json", text: "{}\n" },
    { kind: "commands", script: "up\n", goesOn: true, printed: "it is up\n" },
    { kind: "commands", script: "run\n", goesOn: false, printed: undefined },
  ]);
});

test.each([
  ["a  b\n", "a b\n", true],
  ["a …\nb\n", "a 17 x\nb\n", true],
  ["a\n…\nb\n", "a\n1\n2\nb\n", true],
  ["a\n…\n", "a\n", true],
  ["a (b)\n", "a b\n", false],
  ["a\n", "a\nb\n", false],
  ["b\n", "a\nb\n", false],
  ["a\n", "npm warn x\na\n", true],
])("PROD-1 %j says of %j: %s", (expected, output, is) => {
  expect(isAsPrinted(expected, output)).toBe(is);
});

test("PROD-1 what goes on is compared by its beginning", () => {
  expect(hasBegunAsPrinted("a\n…\nc\n", "a\nb\nc\nd")).toBe(true);
  expect(hasBegunAsPrinted("a\n…\nc\n", "a\nb\n")).toBe(false);
});

test("PROD-1 ids are those that were printed last", () => {
  const run = "run_1m860gc4cyhwgfz98b8px";
  expect(withIds("show RUN_ID, answer CALL_ID", `${run}_c1 of ${run}`)).toBe(`show ${run}, answer ${run}_c1`);
});
