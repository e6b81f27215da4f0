import { expect, test } from "vitest";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { catalogueOf, tool } from "../../testing/fakes/tools.ts";
import { noticesOf } from "./notices.ts";

const external = { executionType: ExecutionType.EXTERNAL };
const catalogue = catalogueOf(
  tool("weigh", external),
  tool("weigh_twice", external),
  tool("call_out", { ...external, execution: { url: "https://example.org/" } }),
  tool("echo"),
);
const told = (...tools: string[]) =>
  noticesOf(tools, catalogue).map(({ tool: name, problem, closestNames }) => [name, problem, closestNames]);

test("TOOL-6 a watch of tools that services outside execute has nothing to be told", () => {
  expect(told("weigh", "weigh_twice", "weigh")).toEqual([]);
});

test("TOOL-6 a tool that there is not is told, with the names that are close to it", () => {
  expect(told("weigj", "weigh", "hammer")).toEqual([
    ["weigj", 'there is no tool "weigj": calls come when it is added', ["weigh"]],
    ["hammer", 'there is no tool "hammer": calls come when it is added', []],
  ]);
});

test("TOOL-6 a tool that somebody else executes is told, too", () => {
  expect(told("echo", "call_out")).toEqual([
    ["echo", 'tool "echo" is of kind internal: services outside execute those of kind external', []],
    ["call_out", 'tool "call_out" has a URL: the router calls it, and no watcher', []],
  ]);
});
