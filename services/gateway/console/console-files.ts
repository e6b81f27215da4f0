/*
 * The console at `/`: files that are built once and served as they are, and beside them the components of the project. They hold
 * nothing of anybody and need no key; all that the page shows it asks for as every other client does.
 */

import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { LoginSettings } from "#runtime/config/access/login-settings.ts";
import type { PathTaker } from "#runtime/rpc/http/messages.ts";
import { answerJson } from "../plain/exchange.ts";
import type { Components } from "./components.ts";
import { answerFile, contentTypes, type ServedFile, servedFile } from "./served-file.ts";

const built = fileURLToPath(new URL("../../../gen/console/", import.meta.url));

/** The page runs its own code only, talks to its own suite and where people log in, and is shown in no page of another. */
function policyFor(origins: readonly string[]): string {
  const connect = ["'self'", ...origins].join(" ");
  return `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src ${connect}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
}

/** Where the page reads how people log in: an empty object where they need a key. */
const LOGIN_PATH = "/console/login.json";

/** Reads the files into memory: a suite that is upgraded under a running gateway changes nothing that this one serves. */
export async function readConsoleFiles(): Promise<ReadonlyMap<string, ServedFile>> {
  const names = (await readdir(built)).filter((name) => contentTypes[extname(name)] !== undefined);
  const files = names.map(async (name) => {
    const file = await servedFile(contentTypes[extname(name)] ?? "", await readFile(join(built, name)));
    return [name === "index.html" ? "/" : `/console/${name}`, file] as const;
  });
  return new Map(await Promise.all(files));
}

export interface ConsoleParts {
  readonly files: ReadonlyMap<string, ServedFile>;
  readonly login?: LoginSettings | undefined;
  readonly components?: Components | undefined;
}

/** Gives whether the path is one of the console's. */
export function createConsolePaths({ files, login, components }: ConsoleParts): PathTaker {
  const policy = policyFor(login?.origins ?? []);
  const { origins: _, ...told } = login ?? {};
  return (request, response) => {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const file = files.get(path);
    if (request.method !== "GET" && request.method !== "HEAD") return false;
    if (file !== undefined) answerFile(request, response, file, policy);
    else if (path === LOGIN_PATH) answerJson(response, 200, told);
    else return components?.take(request, response, policy) ?? false;
    return true;
  };
}
