import { existsSync, readdirSync } from "node:fs";
import { moduleBeside } from "#runtime/config/places.ts";
import { variablesRead } from "#runtime/config/settings.ts";
import { LocalFailure } from "#runtime/failure/local-failure.ts";
import type { ServiceDefinition } from "#runtime/lifecycle/service.ts";

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

/** What a service reads of an environment; only its configuration is loaded for it. */
export async function variablesOfService(service: string, env: NodeJS.ProcessEnv): Promise<NodeJS.ProcessEnv> {
  const { readConfig } = (await import(moduleOf(service, "config").href)) as {
    readConfig: ServiceDefinition<unknown>["readConfig"];
  };
  return variablesRead(readConfig, env);
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
