// What services are started with, except for where NATS is.

import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { packagesDirectory, userCache } from "#runtime/config/places.ts";
import { withSecretFiles } from "#runtime/config/secrets/secret-files.ts";
import { foldersOfProject, projectDirectory } from "../project/project.ts";
import { protectedPaths } from "../project/protected.ts";
import { openLoginKey } from "./keys/key.ts";

export interface SuitePlaces {
  /** Of what the suite keeps. */
  directory: string;
  /** Of the keys of all who may sign in to NATS. */
  credentials: string;
}

/** Throws for a project that cannot be used, and for keys that others may read. */
export function environmentOfServices(
  options: { env?: NodeJS.ProcessEnv; auth?: "key" | "none" | undefined },
  { directory, credentials }: SuitePlaces,
): NodeJS.ProcessEnv {
  const project = projectDirectory();
  const set = { ...process.env, ...options.env };
  const given: NodeJS.ProcessEnv = {
    ...withSecretFiles({ ...secretsOf(directory), ...set }),
    PATH: pathWithPrograms(),
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(userCache(), "compile-cache"),
    ...options.env,
    ...foldersOfProject(project, set),
    TOOLBUS_HEALTH_PORT: undefined, // one port, and several processes: the gateway's own paths tell of a suite
    TOOLBUS_BUS_CREDENTIALS: credentials,
    ...(options.auth === "none" && { TOOLBUS_AUTH: "none" }),
  };
  given.TOOLBUS_MCP_LOGIN_KEY ??= openLoginKey(directory);
  return { ...given, ...protectedPaths({ project, directory, env: given }) };
}

/** Whether somebody has decided who may call: by keys, by tokens, or that nobody needs any. */
export function hasCredentials(env: NodeJS.ProcessEnv): boolean {
  const named = ["TOOLBUS_API_KEYS", "TOOLBUS_LOCAL_KEY", "TOOLBUS_JWT_ISSUER"];
  return env.TOOLBUS_AUTH === "none" || named.some((name) => env[name] !== undefined);
}

/** The project's own programs first: the Node that it was made for, and MCP servers from its packages. */
function pathWithPrograms(): string {
  return [join(packagesDirectory, ".bin"), process.env.PATH ?? ""].join(delimiter);
}

/** Secrets that lie in the directory of the suite never were in anybody's environment. */
function secretsOf(directory: string): NodeJS.ProcessEnv {
  const path = join(directory, "secrets");
  return existsSync(path) ? { TOOLBUS_SECRETS_DIRECTORY: path } : {};
}
