// The JSON that documents show is what people copy into files of agents and tools: the router's own readers take it.

import { expect, it } from "vitest";
import { parseScript } from "../../../services/orchestrator/model/providers/scripted/script.ts";
import { parseAgentFile } from "../../../services/tool-router/catalogue/files/agent-file.ts";
import { parseToolFile } from "../../../services/tool-router/catalogue/files/tool-file.ts";
import { documentTexts } from "./document-texts.ts";

const pages = ["docs/add-a-tool.md", "docs/agents.md", "examples/providers/README.md", "CONTRIBUTING.md"];

const shown = documentTexts()
  .filter(({ path }) => pages.includes(path))
  .flatMap(({ path, text }) =>
    [...text.matchAll(/^```json\n(.*?)^```/gms)].map(([, json = ""]) => [path, json.trim()] as const),
  );
const isScript = (json: string) => json.startsWith("{") && "turns" in JSON.parse(json);

it("there is JSON on each of the pages", () => {
  expect(new Set(shown.map(([path]) => path))).toEqual(new Set(pages));
});

it.each(shown.filter(([, json]) => isScript(json)))("%s: %s is replayed", (path, json) => {
  expect(parseScript(path, json).turns.length).toBeGreaterThan(0);
});

it.each(shown.filter(([, json]) => !isScript(json)))("%s: %s is read", (_, json) => {
  const isPart = !json.startsWith("{");
  const value = JSON.parse(isPart ? `{${json}}` : json) as object;
  const isTool = "kind" in value || "executionType" in value;
  const parsed = isTool ? parseToolFile(json) : parseAgentFile(JSON.stringify({ ...agent, ...value }));
  expect(parsed).toMatchObject({ kind: "parsed" });
});

/** What an example leaves out that shows a part of an agent's file. */
const agent = { name: "example", model: { provider: "scripted", model: "hello.json" } };
