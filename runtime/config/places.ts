// Where the suite's own programs lie: its modules, the packages beside them, and what it fetches for its user.

import { homedir } from "node:os";
import { extname, isAbsolute, join, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of `cli`, `runtime` and `services`. */
export const programDirectory = fileURLToPath(new URL("../../", import.meta.url));

/** The packages that it uses: below it in a clone, and beside it where it is installed as one of them. */
export const packagesDirectory = packagesFor(programDirectory);

/** A module beside that of `meta`, to be started or imported by its URL: TypeScript in a clone, JavaScript in the package. */
export function moduleBeside(meta: Pick<ImportMeta, "url">, name: string): URL {
  return new URL(`${name}${extname(import.meta.url)}`, meta.url);
}

/** Programs that were fetched and compiled code, for all folders of a user: `toolbus` in XDG_CACHE_HOME or in `~/.cache`. */
export function userCache(env: NodeJS.ProcessEnv = process.env): string {
  return userFolder(env, "XDG_CACHE_HOME", ".cache");
}

/** What a user has set for all folders: `toolbus` in XDG_CONFIG_HOME or in `~/.config`. */
export function userConfig(env: NodeJS.ProcessEnv = process.env): string {
  return userFolder(env, "XDG_CONFIG_HOME", ".config");
}

function userFolder(env: NodeJS.ProcessEnv, variable: string, folder: string): string {
  const given = env[variable] ?? "";
  return join(isAbsolute(given) ? given : join(env.HOME || homedir(), folder), "toolbus");
}

function packagesFor(directory: string): string {
  const name = `${sep}node_modules${sep}`;
  const at = directory.indexOf(name);
  return at === -1 ? join(directory, "node_modules") : directory.slice(0, at + name.length - 1);
}
