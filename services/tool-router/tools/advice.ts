import { aliasesOf } from "./resolve.ts";
import type { ToolEntry, ToolSet } from "./tool-set/tool-set.ts";

/** Whether a model may call an entry as things stand. */
export type IsCallable = (entry: ToolEntry) => boolean;

const MAX_CLOSEST = 3;
const MAX_LISTED = 20;
/** Longer names are compared by their beginning: a refusal costs little, whatever was asked for. */
const MAX_COMPARED = 64;

export function isCallableByPolicy({ decision }: ToolEntry): boolean {
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

/** Of things that have several spellings, the names of those that are spelled like a name, the nearest first. */
export function nearest(name: string, candidates: Iterable<{ name: string; spellings: readonly string[] }>): string[] {
  const wanted = comparable(name);
  const near: { name: string; distance: number }[] = [];
  for (const { name: candidate, spellings } of candidates) {
    const distance = Math.min(...spellings.map((spelling) => distanceBetween(wanted, comparable(spelling))));
    if (distance < 1) near.push({ name: candidate, distance });
  }
  return near
    .sort((a, b) => a.distance - b.distance || a.name.localeCompare(b.name))
    .slice(0, MAX_CLOSEST)
    .map((one) => one.name);
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

/** Case, separators and the form of a reference make no difference. */
function comparable(name: string): string {
  return name
    .slice(0, 2 * MAX_COMPARED)
    .toLowerCase()
    .replace(/__[0-9a-f]{16}$/, "")
    .replace(/[^\p{L}\p{N}]+/gu, "")
    .slice(0, MAX_COMPARED);
}

/** From 0, the same, to 1, not alike: edits for each letter that may be wrong, which is every fourth. */
function distanceBetween(wanted: string, other: string): number {
  if (wanted === other) return 0;
  const length = Math.max(wanted.length, other.length);
  const isPart = Math.min(wanted.length, other.length) >= 4 && (wanted.includes(other) || other.includes(wanted));
  if (isPart) return 0.5 + (0.4 * Math.abs(wanted.length - other.length)) / length;
  const allowed = Math.max(1, Math.floor(length / 4));
  return Math.abs(wanted.length - other.length) > allowed ? 1 : editsBetween(wanted, other) / (allowed + 1);
}

/** Levenshtein's distance, one row at a time. */
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, replaced));
    }
    row = next;
  }
  return row[b.length]!;
}
