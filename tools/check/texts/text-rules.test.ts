import { describe, expect, test } from "vitest";
import { faultsInText } from "./text-rules.ts";

/** What may stand nowhere in the tree, so not here either: put together from its words. */
const pathOf = (...words: string[]) => ["", ...words].join("/");
const host = ["registry", "npmjs", "org"].join(".");
const home = pathOf("home", "ada");
const output = pathOf("tmp", "out.txt");
const work = pathOf("work", "main");
const shelf = "shelf";
const duties = "duties";
const origin = JSON.stringify("resolved");

describe("what the tree may not say", () => {
  test.each([
    ["docs/page.md", `cd ${home}/toolbus`, `docs/page.md:1: ${home} is a path of one machine`],
    ["README.md", `see ${output}`, `README.md:1: ${output} is a path of one machine`],
    ["cli/up.ts", `const root = "${work}";`, `cli/up.ts:1: ${work} is a path of one machine`],
    [".npmrc", `registry=https://${host}/`, `.npmrc:1: ${host} is the host of a package registry`],
    ["README.md", `the ${shelf} of calls`, `README.md:1: ${shelf} is a word of our own: say it in the field's terms`],
    ["package-lock.json", `\n  ${origin}: "x"`, `package-lock.json:2: ${origin}: is where a package came from`],
  ])("%s with %j is a fault", (path, text, fault) => {
    expect(faultsInText(path, text)).toEqual([fault]);
  });

  test.each([
    ["README.md", `https://example.com${pathOf("work", "item")} and services${pathOf("work", "README.md")}`],
    ["services/mcp-bridge/testing/stdio.test.ts", `const socket = "${pathOf("tmp", "peer.sock")}";`],
    ["docs/page.md", `the consumer tool_router_${duties}`],
    ["docs/page.md", "kept in `.toolbus/` and found on the PATH"],
  ])("%s with %j is none", (path, text) => {
    expect(faultsInText(path, text)).toEqual([]);
  });
});
