import { Builtin, type BuiltinPolicy, ExecutionType, type Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { builtInName, POLICY_BUILT_IN_NAMES } from "#runtime/agent-file/built-in-name.ts";
import { PROVIDER_BY_KIND } from "../../tools/tool-set/executor.ts";

/** What is wrong with a tool of the catalogue that a provider of the suite runs (ORCH-9, WORK-12); each fault with its path. */
export function faultsOfProvided(tool: Tool): string[] {
  const { executionType: kind, builtinPolicy: policy } = tool;
  if (!PROVIDER_BY_KIND.has(kind)) return [];
  const faults = tool.isAsync ? ["isAsync: hosted and builtin tools answer at once"] : [];
  if (kind === ExecutionType.HOSTED)
    return policy ? [...faults, "builtinPolicy: is for tools of kind builtin"] : faults;
  return [...faults, ...(policy ? faultsOfPolicy(policy) : ["builtinPolicy: a builtin tool is nothing without one"])];
}

function faultsOfPolicy({ builtin, allowedPaths, allowedCommands }: BuiltinPolicy): string[] {
  if (builtInName({ builtin }) === undefined)
    return [`builtinPolicy.name: must be one of ${POLICY_BUILT_IN_NAMES.join(", ")}`];
  const paths = allowedPaths.flatMap((path, index) =>
    path.startsWith("/") && !path.includes("\0")
      ? []
      : [`builtinPolicy.allowedPaths[${index}]: must be an absolute path`],
  );
  const commands = allowedCommands.flatMap((command, index) =>
    isCommand(command) ? [] : [`builtinPolicy.allowedCommands[${index}]: must be a bare name or an absolute path`],
  );
  const isForNothing = builtin !== Builtin.SHELL_EXEC && allowedCommands.length > 0;
  return [...paths, ...commands, ...(isForNothing ? ["builtinPolicy.allowedCommands: is for shell_exec"] : [])];
}

function isCommand(text: string): boolean {
  return text !== "" && !text.includes("\0") && (text.startsWith("/") || !text.includes("/"));
}
