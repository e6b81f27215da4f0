import { readdirSync } from "node:fs";
import { LocalFailure } from "#runtime/failure/local-failure.ts";
import type { ServiceDefinition } from "#runtime/lifecycle/service.ts";

const servicesUrl = new URL("../../services/", import.meta.url);

/** Every folder below services/ that has a main.ts is a service. */
export function listRooms(): string[] {
  return readdirSync(servicesUrl, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && readdirSync(new URL(`${entry.name}/`, servicesUrl)).includes("main.ts"))
    .map((entry) => entry.name)
    .sort();
}

/** What a service's main.ts exports. Throws `not_found` with the names that there are. */
export async function definitionOfRoom(room: string): Promise<ServiceDefinition<unknown>> {
  if (!listRooms().includes(room)) {
    throw new LocalFailure("not_found", `there is no service "${room}"; the services are ${listRooms().join(", ")}`);
  }
  const main = (await import(new URL(`${room}/main.ts`, servicesUrl).href)) as { service: ServiceDefinition<unknown> };
  return main.service;
}
