// Which tests need what: a test belongs to the cheapest project that can run it, by what it imports.

import { sourceFilesBelow } from "../architecture/source-files.ts";

/**
 * Tests that start nothing, that start processes for themselves, that start several services, and that replace what a worker's tests
 * share. Those that are given the longest time are first, and of others the largest.
 */
export interface TestsByProject {
  readonly pure: readonly string[];
  readonly broker: readonly string[];
  readonly system: readonly string[];
  readonly isolated: readonly string[];
}

const folders = ["runtime", "services", "cli", "console", "sdk", "tools", "examples", "bench", "test"];

/** What starts a process or a thread, and what replaces parts of the machine that all tests of a worker share. */
const startsOthers = new Set(["node:child_process", "node:worker_threads"]);
const replacesGlobals =
  /\bvi\.(mock|useFakeTimers|spyOn|stub)|\bprocess\.(on|chdir)\(|\bprocess\.env(\.\w+|\[.*\]) \??\??=[^=]/;

export function testsByProject(): TestsByProject {
  const files = folders.flatMap((folder) => sourceFilesBelow(folder));
  const importsByPath = new Map(files.map(({ path, imports }) => [path, imports]));
  // What needs a browser is a command of its own: npm run test:console.
  const tests = files.filter(({ path }) => path.endsWith(".test.ts") && !path.startsWith("console/testing/"));
  const projectOf = ({ path, text }: { path: string; text: string }): keyof TestsByProject => {
    if (replacesGlobals.test(text)) return "isolated";
    if (reachedFrom(path, importsByPath).isDisjointFrom(startsOthers)) return "pure";
    return path.startsWith("test/") ? "system" : "broker";
  };
  const longestFirst = tests.toSorted(
    ({ text }, { text: other }) => longestLimitIn(other) - longestLimitIn(text) || other.length - text.length,
  );
  const byProject = Object.groupBy(longestFirst, projectOf);
  const pathsOf = (project: keyof TestsByProject) => byProject[project]?.map(({ path }) => path) ?? [];
  return {
    pure: pathsOf("pure"),
    broker: pathsOf("broker"),
    system: pathsOf("system"),
    isolated: pathsOf("isolated"),
  };
}

/** Of the time limits that a file's tests have of their own, the longest. */
function longestLimitIn(text: string): number {
  const limits = [...text.matchAll(/(?:timeout: |\}, )(\d+)_000\b/g)].map(([, seconds]) => Number(seconds));
  return Math.max(0, ...limits);
}

/** All that a file imports, and what that imports. */
function reachedFrom(path: string, importsByPath: ReadonlyMap<string, readonly string[]>): Set<string> {
  const reached = new Set<string>();
  const open = [path];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (reached.has(next)) continue;
    reached.add(next);
    open.push(...(importsByPath.get(next) ?? []));
  }
  return reached;
}
