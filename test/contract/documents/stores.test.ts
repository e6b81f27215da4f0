import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { BUCKETS, OBJECT_STORES, STREAMS } from "#runtime/bus/declarations/declarations.ts";

const names = [...Object.keys(STREAMS), ...Object.keys(BUCKETS), ...Object.keys(OBJECT_STORES)];
const page = new URL("../../../docs/operations/stores.md", import.meta.url);

test.each(names)("SEC-5 the operator is told the bound of %s, and what to do when it is full", async (name) => {
  const text = await readFile(page, "utf8");
  const [, remedies = ""] = text.split("## When a store is full");
  expect(text).toContain(`| \`${name}\` |`);
  const heads = remedies.split("\n\n").map((paragraph) => /^\*\*(.*?)\*\*/.exec(paragraph)?.[1] ?? "");
  expect(heads.some((head) => head.includes(`\`${name}\``))).toBe(true);
});
