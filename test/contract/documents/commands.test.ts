// What documents tell a reader to type: each `toolbus …` is a command that there is, with options that it has, and each
// `npm run …` is a script. Whether it does what is said of it, the tests of the command show.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { expect, it } from "vitest";
import { projectRoot, sourceFilesBelow } from "../../architecture/source-files.ts";
import { documentTexts } from "./document-texts.ts";

interface Typed {
  readonly place: string;
  readonly words: readonly string[];
}

it("each command that a document shows is one that there is, with its options", async () => {
  const program = await openProgram();
  const typed = typedAfter(/^(?:[A-Z_]+=\S+ )*(?:npx )?toolbus ([^#\n|;]+)/gm);
  expect(typed.length).toBeGreaterThan(40);
  expect(typed.flatMap(({ place, words }) => faultsOf(program, words).map((fault) => `${place}: ${fault}`))).toEqual(
    [],
  );
});

it("each npm script that a document shows is one that there is", () => {
  const { scripts } = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8")) as { scripts: object };
  const typed = typedAfter(/^(?:[A-Z_]+=\S+ )*npm run (?:-s )?([^#\n|;]+)/gm);
  expect(typed.length).toBeGreaterThan(10);
  expect(typed.filter(({ words: [name = ""] }) => !(name in scripts))).toEqual([]);
});

it("npx is told the package of a program that has another name, as it would run what else has that name", () => {
  const read = (path: string) => JSON.parse(readFileSync(join(projectRoot, path), "utf8"));
  const packages = Object.keys(read("package.json").devDependencies);
  const programs = packages.flatMap((name) => {
    const { bin = {} } = read(`node_modules/${name}/package.json`) as { bin?: string | Record<string, string> };
    return typeof bin === "string" ? [] : Object.keys(bin).filter((program) => program !== name);
  });
  expect(programs).toContain("buf");
  const typed = typedAfter(/(?:^|\$\()(?:[A-Z_]+=\S+ )*npx ([^#\n|;]+)/gm);
  expect(typed.length).toBeGreaterThan(40);
  expect(typed.filter(({ words: [name = ""] }) => programs.includes(name))).toEqual([]);
});

/** As cli/main.ts joins it, without what would run it. */
async function openProgram(): Promise<Command> {
  const program = new Command("toolbus")
    .option("-u, --url <url>")
    .option("--api-key <key>")
    .option("--context <name>")
    .option("--json");
  for (const { path } of sourceFilesBelow("cli/commands").filter((file) => !file.isTest)) {
    const module = (await import(join(projectRoot, path))) as Record<string, unknown>;
    for (const [name, add] of Object.entries(module)) {
      if (/^add\w+Command$/.test(name)) (add as (program: Command) => void)(program);
    }
  }
  return program;
}

/** At the beginning of a line or a span of code, so that a sentence about toolbus is no command. */
function typedAfter(pattern: RegExp): Typed[] {
  return documentTexts().flatMap(({ path, text }) => {
    const code = [...text.matchAll(/^```sh\n(.*?)^```|`([^`\n]+)`/gms)]
      .map(([, block, span]) => block ?? span)
      .join("\n");
    return [...code.matchAll(pattern)].map(([whole, rest = ""]) => ({
      place: `${path}: ${whole.trim()}`,
      words: rest
        .replace(/"[^"]*"|'[^']*'/g, "TEXT")
        .trim()
        .split(/\s+/),
    }));
  });
}

function faultsOf(program: Command, words: readonly string[]): string[] {
  let command = program;
  const faults: string[] = [];
  for (const word of words) {
    const known = [...command.options, ...program.options, { long: "--help", short: "-h" }];
    if (word.startsWith("-")) {
      if (!known.some(({ long, short }) => word === long || word === short)) faults.push(`there is no option ${word}`);
      continue;
    }
    const inner = command.commands.find((one) => one.name() === word);
    if (inner !== undefined) command = inner;
    else if (command === program) faults.push(`there is no command ${word}`);
  }
  return faults;
}
