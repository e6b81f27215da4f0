import { create } from "@bufbuild/protobuf";
import type { Source } from "#gen/toolbus/tool/v1/source_pb.ts";
import { type CallExecution, CallExecutionSchema, ExecutionType, type Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { builtInName } from "#runtime/agent-file/built-in-name.ts";

/** Who runs a tool. */
export type Executor =
  | { kind: "internal" }
  | { kind: "gateway" }
  /** A person in the active space or an external service submits the result. */
  | { kind: "outside" }
  | {
      kind: "provider";
      provider: string;
      source: Source | undefined;
      tool: string;
      /** Whether another instance goes on with a call whose instance is lost. */
      isResumable?: boolean;
    };

/** Whether the provider goes on with a call that it is asked for again, by whichever router. */
export function isResumable(executor: Executor): boolean {
  return executor.kind === "provider" && executor.isResumable === true;
}

/** The kinds that a catalogue's tool may have; the others come from sources, callers and clients of runs. */
export const CATALOGUE_KINDS: ReadonlySet<ExecutionType> = new Set([
  ExecutionType.INTERNAL,
  ExecutionType.GATEWAY,
  ExecutionType.EXTERNAL,
  ExecutionType.SPACE,
  ExecutionType.CUSTOM,
  ExecutionType.HOSTED,
  ExecutionType.BUILTIN,
]);

/** The providers of the suite that run the catalogue's tools of a kind (KIND-2). */
export const PROVIDER_BY_KIND: ReadonlyMap<ExecutionType, string> = new Map([
  [ExecutionType.HOSTED, "worker"],
  [ExecutionType.BUILTIN, "worker"],
]);

/** ORCH-3: files and commands of this machine, which no pattern reaches. */
export function isByNameOnly(entry: Tool | undefined): boolean {
  return entry?.executionType === ExecutionType.BUILTIN;
}

/** TOOL-3: a URL decides before everything but `internal`. */
export function executorOfCatalogueTool(tool: Tool): Executor {
  if (tool.executionType === ExecutionType.INTERNAL) return { kind: "internal" };
  if (tool.execution !== undefined && tool.execution.url !== "") return { kind: "gateway" };
  if (tool.executionType === ExecutionType.CUSTOM) {
    const { provider = "", toolType = "" } = tool.customType ?? {};
    return { kind: "provider", provider, source: undefined, tool: toolType };
  }
  const provider = PROVIDER_BY_KIND.get(tool.executionType);
  if (provider === undefined) return { kind: "outside" };
  return { kind: "provider", provider, source: undefined, tool: builtInName(tool.builtinPolicy) ?? tool.name };
}

/** What is told of who executes a call. */
export function executionBy(executor: Executor, { executionType }: Tool, attemptCount = 0): CallExecution {
  const provider = executor.kind === "provider" ? executor.provider : "";
  const type = executor.kind === "gateway" ? ExecutionType.GATEWAY : executionType;
  return create(CallExecutionSchema, { executionType: type, provider, attemptCount });
}

/** TOOL-10: what a provider offers is visible only if it says so. */
export function isVisible(tool: Tool, executor: Executor): boolean {
  if (tool.visible !== undefined) return tool.visible;
  if (executor.kind === "provider") return false;
  return VISIBLE_KINDS.has(tool.executionType);
}

const VISIBLE_KINDS: ReadonlySet<ExecutionType> = new Set([
  ExecutionType.GATEWAY,
  ExecutionType.EXTERNAL,
  ExecutionType.SPACE,
]);
