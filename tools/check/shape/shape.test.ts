import { expect, test } from "vitest";
import { figuresOfFolders, findingsFrom } from "./shape.ts";

const filesOf = (folder: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${folder}/f${index}.ts`);

const valuesOf = (paths: readonly string[]) => figuresOfFolders(paths).map(({ value }) => value);

test("a folder counts its files and folders, tests too, beside the files that every service has", () => {
  const standard = ["README.md", "main.ts", "config.ts", "service.ts", "routes.ts"].map((name) => `a/${name}`);
  expect(valuesOf([...standard, ...filesOf("a", 3), "a/one.test.ts", "a/b/x.ts", "a/b/y.ts", "root.ts"])).toEqual([
    5, 100,
  ]);
});

test("the share of narrow folders is of all folders", () => {
  expect(valuesOf([...filesOf("a", 11), ...filesOf("b", 10), ...filesOf("c", 1)])).toEqual([11, 66]);
});

test.each([
  ["at its goal", { value: 15, goal: 15 }, false],
  ["over its goal", { value: 16, goal: 15 }, true],
  ["over its goal, where it is held", { value: 900, goal: 500, held: 900 }, false],
  ["over where it is held", { value: 901, goal: 500, held: 900 }, true],
  ["a share under its goal", { value: 89, goal: 90, isShare: true }, true],
  ["a share under its goal, where it is held", { value: 80, goal: 90, held: 80, isShare: true }, false],
])("a figure %s is a fault: %o → %s", (_, figure, isFault) => {
  expect(findingsFrom([{ what: "words", ...figure }]).faults).toHaveLength(isFault ? 1 : 0);
});

test("a fault says value, goal and where to begin; a figure is told in any case", () => {
  const { faults, figures } = findingsFrom([
    { what: "words", value: 7, goal: 5, held: 6, where: ["a/README.md 7"] },
    { what: "lines", value: 1, goal: 5 },
  ]);
  expect(faults).toEqual(["words: 7 (goal 5, held at 6): a/README.md 7"]);
  expect(figures).toEqual(["words: 7 (goal 5, held at 6)", "lines: 1 (goal 5)"]);
});
