import { create } from "@bufbuild/protobuf";
import { type WatchNotice, WatchNoticeSchema } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ExecutionType, ExecutionTypeSchema, type Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { nearest } from "#runtime/failure/spelling/nearest.ts";
import { enumWord } from "#runtime/schema/enum-word.ts";
import { executorOfCatalogueTool } from "../../tools/tool-set/executor.ts";

/**
 * TOOL-6: the tools whose calls will not come to a watcher, by the current catalogue. A watcher may connect before its tool exists,
 * so this is a notice and no refusal; without it, a misspelt name would go unnoticed.
 */
export function noticesOf(tools: readonly string[], catalogue: ReadonlyMap<string, Tool>): WatchNotice[] {
  return [...new Set(tools)].flatMap((tool) => {
    const problem = problemOf(tool, catalogue.get(tool));
    return problem === undefined
      ? []
      : [create(WatchNoticeSchema, { tool, problem, closestNames: closest(tool, catalogue) })];
  });
}

function problemOf(name: string, tool: Tool | undefined): string | undefined {
  if (tool === undefined) return `there is no tool ${JSON.stringify(name)}: calls come when it is added`;
  if (isWatched(tool)) return undefined;
  if (tool.executionType === ExecutionType.EXTERNAL)
    return `tool ${JSON.stringify(name)} has a URL: the router calls it, and no watcher`;
  const kind = enumWord(ExecutionTypeSchema, tool.executionType);
  return `tool ${JSON.stringify(name)} is of kind ${kind}: services outside execute those of kind external`;
}

function isWatched(tool: Tool): boolean {
  return tool.executionType === ExecutionType.EXTERNAL && executorOfCatalogueTool(tool).kind === "outside";
}

function closest(name: string, catalogue: ReadonlyMap<string, Tool>): string[] {
  const others = [...catalogue.values()].filter((tool) => isWatched(tool) && tool.name !== name);
  return nearest(
    name,
    others.map((tool) => ({ name: tool.name, spellings: [tool.name] })),
  );
}
