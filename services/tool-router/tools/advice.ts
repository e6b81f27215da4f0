import { nearest } from "#runtime/failure/spelling/nearest.ts";
import { aliasesOf } from "./resolve.ts";
import type { ToolEntry, ToolSet } from "./tool-set/tool-set.ts";

/** Whether a model may call an entry as things stand. */
export type IsCallable = (entry: ToolEntry) => boolean;

const MAX_LISTED = 20;

function isCallableByPolicy({ decision }: ToolEntry): boolean {
  return decision.kind === "permitted";
}

/** The names that are spelled like a name, the nearest first; only of tools that may be called, so that it gives nothing away. */
export function closestNames(tools: ToolSet, name: string, isCallable: IsCallable = isCallableByPolicy): string[] {
  const callable = [...tools.byModelName.values()].filter(isCallable);
  return nearest(
    name,
    callable.map((entry) => ({
      name: entry.modelName,
      spellings: [entry.modelName, entry.reference, entry.tool.name, ...aliasesOf(tools, entry.reference)],
    })),
  );
}

/** What a model may call instead, in words: the closest names, or else the names that there are. */
export function alternatives(tools: ToolSet, name: string, isCallable: IsCallable = isCallableByPolicy): string {
  const closest = closestNames(tools, name, isCallable);
  if (closest.length > 0) return `Closest that it may call: ${listed(closest)}.`;
  const names = [...tools.byModelName.values()].filter(isCallable).map(({ modelName }) => modelName);
  if (names.length === 0) return "There is no tool that it may call.";
  const rest = names.length > MAX_LISTED ? `, and ${names.length - MAX_LISTED} more` : "";
  return `It may call: ${listed(names.sort().slice(0, MAX_LISTED))}${rest}.`;
}

function listed(names: readonly string[]): string {
  return names.map((name) => JSON.stringify(name)).join(", ");
}
