// What confined tools neither see nor change, since the suite, the console or the next start reads it: they would give themselves
// rights by it.
//
// A path is protected by a mount at it, and nothing can be mounted where nothing is. So what is absent is made, empty, before a tool
// starts. Nothing can be mounted at a symbolic link either: a tool may put another one in its place, which is told.

import { accessSync, constants, existsSync, mkdirSync, readlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { textOfList } from "#runtime/config/forms.ts";
import { userCache, userConfig } from "#runtime/config/places.ts";
import { LocalFailure } from "#runtime/failure/local-failure.ts";
import { variables } from "./project.ts";
import { startFiles } from "./template.ts";

/** What npm reads of the folder in which `npx toolbus` is called. */
const OF_NPM = [".npmrc", "package.json", "package-lock.json", "node_modules"];

export interface ProtectedPlaces {
  readonly project: string;
  /** Of what the suite keeps. */
  readonly directory: string;
  /** Of the services, with the folders of the project. */
  readonly env: NodeJS.ProcessEnv;
}

/** The variables by which services know what is protected. */
export function protectedPaths(places: ProtectedPlaces): NodeJS.ProcessEnv {
  const { env } = places;
  const list = (paths: readonly string[], more: string | undefined) =>
    [textOfList(paths), more].filter(Boolean).join(",");
  return {
    TOOLBUS_PRIVATE_PATHS: list(privatePaths(places), env.TOOLBUS_PRIVATE_PATHS),
    TOOLBUS_READ_ONLY_PATHS: list(readOnlyPaths(places), env.TOOLBUS_READ_ONLY_PATHS),
  };
}

/** Makes what is absent. `warn` is told of links; where tools have to be confined, they are refused. */
export function protectStart(places: ProtectedPlaces, warn: (message: string) => void): void {
  const { project, directory, env } = places;
  if (!mayConfine(env)) return;
  for (const path of foldersOf(env)) make(() => mkdirSync(path));
  for (const path of [directory, userConfig(env), userCache(env)].flatMap((path) => [dirname(path), path]))
    make(() => mkdirSync(path, { mode: 0o700 }));
  makeFilesOfStart(project, env);
  const links = [...foldersOf(env), join(project, ".env"), ...filesOf(project)].map(replaceableLink);
  for (const link of new Set(present(links))) {
    const text = `${link} is a symbolic link: a tool may put another one in its place, which the next start follows. Put there what it leads to.`;
    if (env.TOOLBUS_CONFINEMENT === "required")
      throw new LocalFailure("failed_precondition", text, { kind: "link_replaceable" });
    warn(text);
  }
}

/** With the texts that `toolbus init` gives them. A folder that is no package of npm is not where npm looks for toolbus. */
export function makeFilesOfStart(project: string, env: NodeJS.ProcessEnv): void {
  if (!mayConfine(env)) return;
  const isPackage = ["package.json", "node_modules"].some((name) => existsSync(join(project, name)));
  const files = { ...startFiles, ...(isPackage && { ".npmrc": "# Made by toolbus, so that no tool makes it.\n" }) };
  for (const [name, text] of Object.entries(files))
    make(() => writeFileSync(join(project, name), text, { flag: "wx", mode: name === ".env" ? 0o600 : 0o644 }));
}

function mayConfine(env: NodeJS.ProcessEnv): boolean {
  return process.platform === "linux" && env.TOOLBUS_CONFINEMENT !== "off";
}

function privatePaths({ project, directory, env }: ProtectedPlaces): string[] {
  const named = [env.TOOLBUS_BUS_CREDENTIALS, env.TOOLBUS_TLS_KEY_FILE];
  return [directory, join(project, ".env"), userConfig(env), ...present(named)];
}

function readOnlyPaths({ project, env }: ProtectedPlaces): string[] {
  const named = [env.TOOLBUS_TLS_CERT_FILE, env.TOOLBUS_UV, env.TOOLBUS_NATS_SERVER, env.NODE_COMPILE_CACHE];
  return [...foldersOf(env), ...filesOf(project), ...present(named)];
}

const filesOf = (project: string) => ["toolbus.yaml", ...OF_NPM].map((name) => join(project, name));

const foldersOf = (env: NodeJS.ProcessEnv) => present(Object.values(variables).map((variable) => env[variable]));

const present = (paths: readonly (string | undefined)[]) => paths.filter((path): path is string => Boolean(path));

/** What the suite may not write, no tool of its user may. */
function make(attempt: () => void): void {
  try {
    attempt();
  } catch {} // it is there, or nobody here can make it
}

/** The first link on the way to the path that stands in a directory which this user may write. */
export function replaceableLink(path: string): string | undefined {
  const names = resolve(path).split(sep).slice(1);
  for (const [index] of names.entries()) {
    const place = sep + names.slice(0, index + 1).join(sep);
    const target = targetOf(place);
    if (target === undefined) continue;
    if (isWritable(dirname(place))) return place;
    return replaceableLink(resolve(dirname(place), target, ...names.slice(index + 1)));
  }
  return undefined;
}

function targetOf(place: string): string | undefined {
  try {
    return readlinkSync(place);
  } catch {
    return undefined; // it is no link, or is not there
  }
}

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
