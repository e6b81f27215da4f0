// How large and how tangled the tree is, in figures with a goal each. A figure that has not reached its goal yet is held where it
// is: it may come nearer, and not go back. Whoever brings one nearer writes its new place here.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { folderOrders, upwardImports } from "../../../test/architecture/folder-orders.ts";
import { sourceFilesBelow } from "../../../test/architecture/source-files.ts";
import { observeCommand } from "../../gen/command.ts";
import type { Findings } from "../findings.ts";
import { isGenerated, treePaths } from "../tree-files.ts";

export interface Figure {
  readonly what: string;
  readonly value: number;
  readonly goal: number;
  /** What it may be until the goal is reached. */
  readonly held?: number | undefined;
  /** Whether more is better; else less is. */
  readonly isShare?: boolean;
  /** Where to begin. */
  readonly where?: readonly string[];
}

/** Every service has them, so that they say nothing of a folder's order. */
const standardFiles = new Set(["README.md", "main.ts", "config.ts", "service.ts", "routes.ts"]);

export async function shapeOf(root: string): Promise<Findings> {
  const paths = await treePaths(root, (path) => !isGenerated(path));
  const circles = await importsInCircles(root);
  const orders = Object.keys(folderOrders);
  const upward = orders.flatMap((base) =>
    upwardImports(
      base,
      sourceFilesBelow(base).filter((file) => !file.isTest),
    ),
  );
  return findingsFrom([
    ...figuresOfFolders(paths),
    { what: "imports that are part of a circle", value: circles.length, goal: 0, where: circles },
    { what: "imports of a later folder of the same service", value: upward.length, goal: 0, where: upward },
    await longestReadme(root, paths),
    await linesOfCode(root, paths),
  ]);
}

export function findingsFrom(figures: readonly Figure[]): Findings {
  const faults = figures.filter(isLeft).map((figure) => `${textOf(figure)}${textOfPlaces(figure)}`);
  return { faults, figures: figures.map(textOf) };
}

function isLeft({ value, goal, held = goal, isShare }: Figure): boolean {
  return isShare ? value < Math.min(goal, held) : value > Math.max(goal, held);
}

function textOf({ what, value, goal, held, isShare }: Figure): string {
  const unit = isShare ? " %" : "";
  const bound = held === undefined ? "" : `, held at ${held}${unit}`;
  return `${what}: ${value}${unit} (goal ${goal}${unit}${bound})`;
}

const textOfPlaces = ({ where = [] }: Figure) => (where.length === 0 ? "" : `: ${where.slice(0, 10).join(", ")}`);

/** Every folder counts, those of tests and examples too; the root holds what tools look for there. */
export function figuresOfFolders(paths: readonly string[]): Figure[] {
  const counts = [...entriesByFolder(paths)].map(([folder, { size }]) => ({ folder, size }));
  counts.sort((one, other) => other.size - one.size);
  const narrow = counts.filter(({ size }) => size <= 10).length;
  const wide = counts.filter(({ size }) => size > 10).map(({ folder, size }) => `${folder} ${size}`);
  return [
    { what: "entries of the widest folder", value: counts[0]?.size ?? 0, goal: 15, where: wide },
    {
      what: "folders of at most 10 entries",
      value: Math.floor((100 * narrow) / Math.max(1, counts.length)),
      goal: 90,
      isShare: true,
      where: wide,
    },
  ];
}

function entriesByFolder(paths: readonly string[]): Map<string, Set<string>> {
  const entries = new Map<string, Set<string>>();
  for (const path of paths) {
    const names = path.split("/");
    for (let depth = 1; depth < names.length; depth += 1) {
      const name = names[depth] ?? "";
      const folder = names.slice(0, depth).join("/");
      if (!entries.has(folder)) entries.set(folder, new Set());
      if (!standardFiles.has(name)) entries.get(folder)?.add(name);
    }
  }
  return entries;
}

async function longestReadme(root: string, paths: readonly string[]): Promise<Figure> {
  const readmes = paths.filter((path) => /^services\/[^/]+\/README\.md$/.test(path));
  const words = await Promise.all(readmes.map(async (path) => wordsOf(await readFile(join(root, path), "utf8"))));
  const where = readmes.map((path, index) => `${path} ${words[index]}`);
  return { what: "words in the longest README of a service", value: Math.max(0, ...words), goal: 500, where };
}

const wordsOf = (text: string) => text.split(/\s+/).filter((word) => word !== "").length;

async function linesOfCode(root: string, paths: readonly string[]): Promise<Figure> {
  const code = paths.filter((path) => /^(services|runtime)\/.*\.(ts|py)$/.test(path) && !isTest(path));
  const lines = await Promise.all(
    code.map(async (path) => (await readFile(join(root, path), "utf8")).split("\n").length - 1),
  );
  const value = lines.reduce((sum, count) => sum + count, 0);
  return { what: "lines of services and runtime outside of tests", value, goal: 38_000, held: 72_492 };
}

const isTest = (path: string) => /\.test\.ts$|\/testing\/|\/tests\//.test(path);

/** The linter's rule, asked for alone: it judges each import of the tree, those of types too. */
async function importsInCircles(root: string): Promise<string[]> {
  const args = ["lint", "--only=suspicious/noImportCycles", "--max-diagnostics=none", "--reporter=json", "."];
  const { stdout, output } = await observeCommand("biome", args, { cwd: root });
  if (!stdout.startsWith("{")) throw new Error(`biome gives no report: ${output}`);
  const { diagnostics }: { diagnostics: Diagnostic[] } = JSON.parse(stdout);
  const circles = diagnostics.filter(({ category }) => category === "lint/suspicious/noImportCycles");
  return circles.map(({ location }) => `${location.path}:${location.start.line}`);
}

interface Diagnostic {
  readonly category: string;
  readonly location: { readonly path: string; readonly start: { readonly line: number } };
}
