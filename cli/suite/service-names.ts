import { existsSync, readdirSync } from "node:fs";
import { moduleBeside } from "#runtime/config/places.ts";
import { settingsOf, variablesRead } from "#runtime/config/settings.ts";
import { LocalFailure } from "#runtime/failure/local-failure.ts";
import { nearest } from "#runtime/failure/spelling/nearest.ts";
import type { ServiceDefinition } from "#runtime/lifecycle/service.ts";
import { commandSettings } from "../project/command-settings.ts";

const servicesUrl = new URL("../../services/", import.meta.url);
const moduleOf = (service: string, name: string) =>
  moduleBeside({ url: new URL(`${service}/`, servicesUrl).href }, name);

/** Every folder below services/ that has a `main` is a service. */
export function listServices(): string[] {
  return readdirSync(servicesUrl, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(moduleOf(entry.name, "main")))
    .map((entry) => entry.name)
    .sort();
}

/** How a service reads its environment; only its configuration is loaded for it. */
export async function configReaderOf(service: string): Promise<ServiceDefinition<unknown>["readConfig"]> {
  const config = (await import(moduleOf(service, "config").href)) as Pick<ServiceDefinition<unknown>, "readConfig">;
  return config.readConfig;
}

/** What a service reads of an environment. */
export async function variablesOfService(service: string, env: NodeJS.ProcessEnv): Promise<NodeJS.ProcessEnv> {
  return variablesRead(await configReaderOf(service), env);
}

/** A line for each variable of the suite that is set, and that no service and no command reads: it may be misspelled. */
export async function ignoredVariables(env: NodeJS.ProcessEnv): Promise<string[]> {
  const readers = await Promise.all(listServices().map(configReaderOf));
  const settings = new Set([...commandSettings, ...readers.flatMap(settingsOf)].map(({ name }) => name));
  const read = new Set([...settings, ...readers.flatMap((reader) => Object.keys(variablesRead(reader, env)))]);
  const bare = (name: string) => name.replace("TOOLBUS_", "");
  const candidates = Array.from(settings, (name) => ({ name, spellings: [bare(name)] }));
  return Object.keys(env)
    .filter((name) => name.startsWith("TOOLBUS_") && env[name]?.trim() && !read.has(name) && !isServiceLink(name, env))
    .map((name) => {
      const meant = nearest(bare(name), candidates).join(" or ");
      return `${name} is ignored: there is no such setting${meant && `; did you mean ${meant}?`}`;
    });
}

/** Kubernetes tells each container of all services of its namespace, of one that is called `toolbus-gateway` too. */
function isServiceLink(name: string, env: NodeJS.ProcessEnv): boolean {
  const [, service = ""] = /^(\w+?)_(?:SERVICE_HOST|SERVICE_PORT|PORT)(?:_|$)/.exec(name) ?? [];
  return env[`${service}_SERVICE_HOST`] !== undefined;
}

/** What a service's `main` exports. Throws `not_found` with the names that there are. */
export async function definitionOfService(service: string): Promise<ServiceDefinition<unknown>> {
  if (!listServices().includes(service)) {
    throw new LocalFailure(
      "not_found",
      `there is no service "${service}"; the services are ${listServices().join(", ")}`,
    );
  }
  const main = (await import(moduleOf(service, "main").href)) as {
    service: ServiceDefinition<unknown>;
  };
  return main.service;
}
