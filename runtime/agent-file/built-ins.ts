import type { ToolUse } from "#gen/toolbus/agent/v1/agent_pb.ts";

/** TOOL-12: the tools that spaces offers to every agent that does not choose, by the groups in which `tools.builtins` names them. */
export const BUILT_IN_GROUPS: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    spaces: ["enter_space", "leave_space", "send_message", "read_messages", "skip"],
    memory: ["set_goals", "delete_goals", "set_memories", "delete_memories"],
    plans: ["set_plans", "delete_plans", "get_plans"],
  }),
);

/** Reads the rest of results that are too large to be shown: what has other tools has this one, whatever it chooses. */
export const READ_RESULT = "read_result";

/** The names that nothing may shadow, in an agent that has them or not. */
export const BUILT_IN_NAMES: ReadonlySet<string> = new Set([...[...BUILT_IN_GROUPS.values()].flat(), READ_RESULT]);

/**
 * PROD-4: the built-ins that an agent's file chooses: those of `builtins`, all without it; and of these those that `allowed` names,
 * where it names one.
 * @param realName What an alias of the agent means; the name itself where it is none.
 */
export function chosenBuiltIns(
  { builtins, allowed }: Pick<ToolUse, "builtins" | "allowed">,
  realName: (name: string) => string,
): ReadonlySet<string> {
  const chosen = builtins?.names.flatMap((name) => BUILT_IN_GROUPS.get(name) ?? name) ?? BUILT_IN_NAMES;
  const named = new Set(allowed?.names.map(realName).filter((name) => BUILT_IN_NAMES.has(name)));
  const isKept = (name: string) => BUILT_IN_NAMES.has(name) && (named.size === 0 || named.has(name));
  return new Set([...chosen].filter(isKept)).add(READ_RESULT);
}
