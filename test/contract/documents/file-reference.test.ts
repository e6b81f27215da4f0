import { expect, it } from "vitest";
import { filesReference } from "../../../tools/reference/files.ts";
import { projectRoot } from "../../architecture/source-files.ts";

it("PROD-5 every field of the files of agents and tools is told with its meaning and its value", async () => {
  const page = await filesReference(projectRoot);
  const rows = page.split("\n").filter((line) => /^\| (\*\*)?`/.test(line));
  expect(rows.length).toBeGreaterThan(100);
  expect(
    rows.filter((row) =>
      row.split(/(?<!\\)\|/).some((cell, index, { length }) => index % (length - 1) !== 0 && cell.trim() === ""),
    ),
  ).toEqual([]);
  expect(rows.filter((row) => / (any|undefined) \|$/.test(row))).toEqual([]);
  const headings = new Set(page.split("\n").flatMap((line) => /^#+ (.+)$/.exec(line)?.[1] ?? []));
  const mentioned = [...page.matchAll(/\[((?:Agent|Tool): [^\]]+)\]\(#/g)].map(([, title = ""]) => title);
  expect(mentioned.filter((title) => !headings.has(title))).toEqual([]);
});
