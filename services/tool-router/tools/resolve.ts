import type { ToolEntry, ToolSet } from "./tool-set/tool-set.ts";

/** What a name means to an agent. */
export type Resolution =
  | { kind: "found"; entry: ToolEntry; by: "alias" | "model name" | "reference" }
  /** A tool of that name exists, outside of what the agent uses. */
  | { kind: "outside"; reference: string }
  | { kind: "unknown"; reference: string };

/**
 * An alias of the agent means its target and nothing else; then come the names that its model sees, then real names. So a
 * tool that turns up later never takes over a name that the agent has.
 */
export function resolve(tools: ToolSet, name: string): Resolution {
  const aliased = tools.policy.aliases.get(name);
  const entry = aliased === undefined ? tools.byModelName.get(name) : tools.byReference.get(aliased);
  if (entry !== undefined) return { kind: "found", entry, by: aliased === undefined ? "model name" : "alias" };
  const reference = aliased ?? name;
  const real = tools.byReference.get(reference);
  if (real !== undefined) return { kind: "found", entry: real, by: "reference" };
  return { kind: tools.exists(reference) ? "outside" : "unknown", reference };
}

/** ORCH-3: the aliases that lead to a tool. */
export function aliasesOf(tools: ToolSet, reference: string): string[] {
  return [...tools.policy.aliases].filter(([, target]) => target === reference).map(([alias]) => alias);
}
