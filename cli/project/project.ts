// A project is a folder of agents, tools and their code. `toolbus.yaml` marks it, and says which folders have other names than these:
// agents, tools, workers, hosted, scripts, ui. Commands find it upwards from where they are started; without one, that folder is it.

import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { parse } from "yaml";
import { z } from "zod";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { LocalFailure } from "#runtime/failure/local-failure.ts";

const MARK = "toolbus.yaml";

/** The variables by which services are told. */
export const variables = {
  agents: "TOOLBUS_AGENTS",
  tools: "TOOLBUS_TOOLS",
  workers: "TOOLBUS_WORKERS",
  hosted: "TOOLBUS_HOSTED",
  scripts: "TOOLBUS_SCRIPTS",
  ui: "TOOLBUS_UI",
} as const;

type Folder = keyof typeof variables;

const folders = Object.keys(variables) as Folder[];
const form = z.partialRecord(z.enum(folders), z.string().min(1));

/** The nearest folder upwards that is marked, else where it begins. */
export function projectDirectory(from = process.cwd()): string {
  for (let directory = resolve(from); ; directory = dirname(directory)) {
    if (existsSync(join(directory, MARK))) return directory;
    if (directory === dirname(directory)) return resolve(from);
  }
}

/** Where a suite of this project keeps what lasts. */
export function stateDirectory(): string {
  return join(projectDirectory(), ".toolbus");
}

/** What says of a project how it is started: that changes with a start alone. */
export function filesOfStart(): string[] {
  return [MARK, ".env"].map((name) => join(projectDirectory(), name));
}

const loaded = new Set<string>();

/**
 * The variables in the project's `.env`, which those that are set otherwise stand above. Those of an earlier reading are gone. Returns
 * why it cannot be read.
 */
export function loadProjectVariables(): LocalFailure | undefined {
  for (const name of loaded) delete process.env[name];
  loaded.clear();
  const path = join(projectDirectory(), ".env");
  if (!existsSync(path)) return undefined;
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    const fault = `${path} cannot be read: ${messageFromUnknown(cause)}`;
    return new LocalFailure("failed_precondition", fault, { kind: "project_invalid", cause });
  }
  for (const [name, value] of Object.entries(parseEnv(text))) {
    if (process.env[name] !== undefined || value === undefined) continue;
    process.env[name] = value;
    loaded.add(name);
  }
  dropEmptyOptions();
  return undefined;
}

const ofOptions = ["TOOLBUS_DIRECTORY", "TOOLBUS_HTTP_PORT", "NATS_URL"];

/** An empty one is none, as compose files and `.env` pass it: commander would take it for an option's text. */
export function dropEmptyOptions(): void {
  for (const name of ofOptions) if (process.env[name]?.trim() === "") delete process.env[name];
}

/**
 * The folders as variables of services, unless the environment names them. Throws `failed_precondition` for a mark that cannot be
 * read, and for a folder that is named and not there.
 */
export function foldersOfProject(directory: string, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const named = readMark(join(directory, MARK));
  const paths = folders.map((folder): [string, string] => {
    const variable = variables[folder];
    const given = env[variable]?.trim();
    if (given) return [variable, existing(resolve(given), variable)];
    const name = named[folder];
    const path = resolve(directory, name ?? folder);
    return [variable, name === undefined ? path : existing(path, `${join(directory, MARK)}, ${folder}`)];
  });
  return Object.fromEntries(paths);
}

function readMark(path: string): Partial<Record<Folder, string>> {
  if (!existsSync(path)) return {};
  try {
    return form.parse(parse(readFileSync(path, "utf8")) ?? {});
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error) : messageFromUnknown(error);
    const text = `${path} cannot be used: ${why}\nIt names folders: ${folders.join(", ")}.`;
    throw new LocalFailure("failed_precondition", text, { kind: "project_invalid", cause: error });
  }
}

function existing(path: string, named: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return path;
  const text = `${named}: there is no folder ${path}`;
  throw new LocalFailure("failed_precondition", text, { kind: "folder_missing" });
}
