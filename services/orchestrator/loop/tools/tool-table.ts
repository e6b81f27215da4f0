import type { LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import type { FunctionTool, RunOptions } from "#gen/toolbus/run/v1/run_pb.ts";
import { Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { ListToolsResponse, ModelTool } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { getOrInsertComputed } from "#runtime/collections/get-or-insert-computed.ts";
import { instructionsOfSources } from "#runtime/content/instructions-of-sources.ts";
import type { FieldViolation } from "#runtime/failure/failure.ts";
import { modelToolFromTool } from "../../model/prompt/call-options.ts";
import { isOfRunServer } from "./run-servers.ts";

/** What a name that the model uses leads to. */
export type Target = { kind: "function"; tool: FunctionTool } | { kind: "router"; tool: ModelTool };

export type ToolTable = ReturnType<typeof createToolTable>;

/** The tools of one turn: the session's and those that the client of the run executes. */
export function createToolTable(listed: ListToolsResponse, options: RunOptions | undefined) {
  const functionTools = options?.functionTools ?? [];
  const functionsByName = new Map(functionTools.map((tool) => [tool.name, tool]));
  const sessionTools = listed.tools.filter(({ modelName }) => !functionsByName.has(modelName));
  const toolsByName = new Map<string, ModelTool>();
  for (const tool of sessionTools) {
    for (const name of [tool.modelName, tool.reference, ...tool.aliases]) {
      if (!toolsByName.has(name)) toolsByName.set(name, tool);
    }
  }

  /** By model name, alias or reference; the client's own tools win over the session's of the same name. */
  function find(name: string): Target | undefined {
    const own = functionsByName.get(name);
    if (own !== undefined) return { kind: "function", tool: own };
    const tool = toolsByName.get(name);
    return tool && { kind: "router", tool };
  }

  /** The session's tool, unless the client has one of that name. */
  function sessionToolOf(name: string): ModelTool | undefined {
    return functionsByName.has(name) ? undefined : toolsByName.get(name);
  }

  /** Whether it is a tool of every agent (TOOL-12), which `allowed_tools` does not narrow (ORCH-2). */
  function isBuiltIn(name: string): boolean {
    const tool = sessionToolOf(name);
    return tool !== undefined && isToolOfEveryAgent(tool);
  }

  /** Whether its answer comes later. */
  function isAsync(name: string): boolean {
    return sessionToolOf(name)?.tool?.isAsync ?? false;
  }

  /** The name under which the model knows the tool. */
  function modelNameOf(name: string): string | undefined {
    return functionsByName.has(name) ? name : toolsByName.get(name)?.modelName;
  }

  /** Whether one of the names means the tool that is called so. */
  function isAmong(names: readonly string[], name: string): boolean {
    const called = modelNameOf(name) ?? name;
    return names.some((entry) => (modelNameOf(entry) ?? entry) === called);
  }

  let revisions = new Set<string>();
  return {
    contextRevision: listed.contextRevision,
    /** LOOP-3: all that can be called stay visible, whatever `allowed_tools` says. */
    modelTools: [
      ...sessionTools.filter(({ callable }) => callable).map(modelToolOf),
      ...functionTools.map((tool) => modelToolFromTool(tool.name, tool)),
    ],
    /** What the sources of those tools say of their use, as the model reads it; empty when none says anything. */
    sourceInstructions: instructionsOfSources(listed, sessionTools),
    find,
    isAllowed: (name: string) =>
      options?.allowedTools === undefined || isBuiltIn(name) || isAmong(options.allowedTools.names, name),
    isAmong,
    /** Likewise, and its call brings the answer: one that comes later stops nothing. */
    stopsAt: (names: readonly string[], name: string) => isAmong(names, name) && !isAsync(name),
    isAsync,
    isBuiltIn,
    /** What a repeated execution may do; for a tool that says nothing, or is not known, that it must not happen twice. */
    effectOf: (name: string): Effect => sessionToolOf(name)?.tool?.effect || Effect.AT_MOST_ONCE,
    /** Whether a call may ask models, or call further tools, on the run's behalf: an agent, a hosted module, a third party's provider. */
    canSpend: (name: string) => spendingTypes.has(sessionToolOf(name)?.tool?.executionType ?? 0),
    /** The reference of a tool of the router whose calls are shown in spaces (TOOL-10). */
    visibleReferenceOf(name: string): string | undefined {
      const tool = sessionToolOf(name);
      return tool?.tool?.visible ? tool.reference : undefined;
    },
    modelNameOf,
    /** Takes the revision of the router's list that the end of a call names. */
    noteRevision: (toolsRevision: string) => void revisions.add(toolsRevision),
    /** Whether the calls that ended since the last check all named this list: then it is not listed again. */
    isStillCurrent(): boolean {
      const [revision = "", ...others] = revisions;
      revisions = new Set();
      return others.length === 0 && revision !== "" && revision === listed.toolsRevision;
    },
  };
}

const spendingTypes: ReadonlySet<ExecutionType> = new Set([ExecutionType.HOSTED, ExecutionType.CUSTOM]);

const modelTools = new WeakMap<ModelTool, LanguageModelV4FunctionTool>();

/** Runs share their lists, and so the tools for their models. */
function modelToolOf(tool: ModelTool): LanguageModelV4FunctionTool {
  return getOrInsertComputed(modelTools, tool, () => modelToolFromTool(tool.modelName, tool.tool));
}

/** The router keeps their names to itself; what stands under a policy or in a source is a tool like any other. */
function isToolOfEveryAgent({ reference, tool }: ModelTool): boolean {
  const isBare = !reference.startsWith("@");
  return isBare && tool?.executionType === ExecutionType.BUILTIN && tool.builtinPolicy === undefined;
}

/** LOOP-2, LOOP-3: what a run's options name and no tool answers to; a run with such options is refused. */
export function faultsOfOptions(table: ToolTable, options: RunOptions | undefined): FieldViolation[] {
  const isUnknown = (name: string) => table.find(name) === undefined && !isOfRunServer(name, options);
  const faultsIn = (field: string, names: readonly string[], what: string) =>
    names.map((name) => ({
      field: `options.${field}`,
      message: `${field.replace("limits.", "")} names ${JSON.stringify(name)}, ${what}`,
    }));
  const stops = options?.limits?.stopAtTools ?? [];
  const forced = faultOfForced(table, options);
  return [
    ...faultsIn("allowed_tools", (options?.allowedTools?.names ?? []).filter(isUnknown), "which no tool is called"),
    ...faultsIn("limits.stop_at_tools", stops.filter(isUnknown), "which no tool is called"),
    ...faultsIn("limits.stop_at_tools", stops.filter(table.isAsync), "whose answer comes later"),
    ...(forced === undefined ? [] : [{ field: "options.tool_choice", message: forced }]),
  ];
}

function faultOfForced(table: ToolTable, options: RunOptions | undefined): string | undefined {
  const choice = options?.toolChoice?.choice;
  if (choice?.case !== "forcedTool") return undefined;
  const target = table.find(choice.value);
  const forced = `the forced tool ${JSON.stringify(choice.value)}`;
  if (target === undefined) return isOfRunServer(choice.value, options) ? undefined : `${forced} does not exist`;
  if (!table.isAllowed(choice.value)) return `${forced} is not allowed`;
  const isOff = target.kind === "router" && !target.tool.callable;
  return isOff ? `${forced} cannot be called: ${target.tool.reason}` : undefined;
}
