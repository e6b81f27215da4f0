/**
 * That each requirement of kinds, tools, orchestration and the loop, and each point and scenario of the specifications that they
 * come from, has a test that says so in its name. What is skipped or looks at nothing is no such test.
 */

import { describe, expect, test } from "vitest";
import { sourceFilesBelow } from "../architecture/source-files.ts";
import { orchestrationScenarios, toolSystemScenarios } from "./scenarios.ts";
import { declaredTests, isSkipped, looksAtSomething } from "./test-titles.ts";

const ownPath = "test/contract/proofs.test.ts";

/** All other tests of the project. */
const tests = ["services", "test", "runtime", "cli"]
  .flatMap(sourceFilesBelow)
  .filter(({ path }) => path.endsWith(".test.ts") && path !== ownPath);
const declared = tests.flatMap(declaredTests).filter(looksAtSomething);

const idsUpTo = (name: string, last: number) => Array.from({ length: last }, (_, index) => `${name}-${index + 1}`);
const ids = [
  ...idsUpTo("KIND", 4),
  ...idsUpTo("TOOL", 13),
  ...[...idsUpTo("ORCH", 5), "ORCH-9", "ORCH-11"],
  ...idsUpTo("LOOP", 17),
];

/** What the specification asks for, and the name of the test that shows it. */
const points: [string, string][] = [
  ["kinds: function, MCP and internal tools in one turn", "LOOP-5 KIND-1 calls for the client and calls for the suite"],
  ["a result has its call's id, its output, is_error", "LOOP-7 a result has its call's id, its output"],
  ["tool_choice auto, required, none", "LOOP-2 %s is handed to the model, in the first turn"],
  ["tool_choice of one tool", "LOOP-2 a forced tool is forced once, under any of its names"],
  ["allowed_tools: callable and visible", "LOOP-3 the filter leaves all tools visible and lets only some be called"],
  ["the loop ends without calls", "LOOP-1 the model produces no tool calls"],
  ["the loop ends at max_turns", "LOOP-1 max_turns is reached"],
  ["the loop ends when it is cancelled", "LOOP-15 it is cancelled"],
  ["the loop ends with an unrecoverable error", "LOOP-1 an error is unrecoverable"],
  ["function calls park the run", "LOOP-5 LOOP-16 parks until its outputs are there"],
  ["function calls complete it in single-turn mode", "LOOP-6 is completed in single-turn mode"],
  ["the follow-up is an input of function_call_output", "LOOP-5 LOOP-6 input answers a call of an earlier run once"],
  ["MCP over stdio and HTTP", "ORCH-6 lists and calls, with progress, logs and the headers of its configuration"],
  ["internal tools: register, get, list, initialize, shutdown", "LOOP-9 tools are registered, found, listed"],
  ["a duplicate name is refused", "LOOP-9 a duplicate name is refused with both names"],
  ["results are validated", "LOOP-8 that are no JSON, or not what was promised, are errors of their call"],
  ["provider:tool_type", "KIND-3 a custom kind of a known provider is good"],
  ["options of the loop: limits, time, retries", "LOOP-12 after model_retries the run fails"],
  ["open question: parallel calls", "LOOP-4 calls of one turn run in parallel, within a bound"],
  ["open question: discovery of MCP servers", "ORCH-7 tools are discovered anew for each turn"],
  [
    "open question: tools that are loaded without recompiling",
    "WORK-12 its tools are offered as they describe themselves",
  ],
  ["open question: streams of intermediate results", "LOOP-10 what a tool tells meanwhile streams to the client"],
];

describe("what is required", () => {
  test("stands in tests that were found, of which none is skipped", () => {
    expect(tests.length).toBeGreaterThan(100);
    expect(declared.length).toBeGreaterThan(1_000);
    expect(tests.filter(isSkipped).map(({ path }) => path)).toEqual([]);
  });

  test("each id is cited by the name of a test", () => {
    const isCited = (id: string) =>
      declared.some(({ group, title }) => new RegExp(`\\b${id}\\b`).test(`${group} ${title}`));
    expect(ids.filter((id) => !isCited(id))).toEqual([]);
  });

  test.each([...points, ...toolSystemScenarios, ...orchestrationScenarios])("%s: shown by a test", (_, ...names) => {
    const isShown = (name: string) => declared.some(({ title }) => title.includes(name));
    expect(names.filter((name) => !isShown(name))).toEqual([]);
  });
});
