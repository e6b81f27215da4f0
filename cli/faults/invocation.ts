import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { z } from "zod";

/** What npx writes of the packages that it keeps in a folder of its own, since a project has them not. */
const kept = z.object({ dependencies: z.record(z.string(), z.string()) });

/** How a person calls this command again: by its name, or by npx if that was how it was called. */
export function invocationOf(program: string, env: NodeJS.ProcessEnv): string {
  return env.npm_lifecycle_event === "npx" ? `npx ${packageOf(program)}` : "toolbus";
}

/** Of the process. */
export const invocation = invocationOf(process.argv[1] ?? "", process.env);

/** By name, unless npx was given a file. */
function packageOf(program: string): string {
  const folder = /^.*[/\\]_npx[/\\][^/\\]+(?=[/\\])/.exec(program)?.[0];
  if (folder === undefined) return "toolbus";
  try {
    const { dependencies } = kept.parse(JSON.parse(readFileSync(join(folder, "package.json"), "utf8")));
    const [file] = Object.values(dependencies).flatMap((spec) => /^file:(.+)/.exec(spec)?.[1] ?? []);
    return file === undefined ? "toolbus" : `file:${resolve(folder, file)}`; // npx takes a mere path for a program
  } catch {
    return "toolbus"; // npx may keep it otherwise one day
  }
}
