import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { LocalFailure } from "#runtime/failure/local-failure.ts";

const servicesUrl = new URL("../../services/", import.meta.url);

/** Every folder below services/ that has a main.ts is a service. */
export function listRooms(): string[] {
  return readdirSync(servicesUrl, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && readdirSync(new URL(`${entry.name}/`, servicesUrl)).includes("main.ts"))
    .map((entry) => entry.name)
    .sort();
}

/** The path of a service's main.ts. Throws `not_found` with the names that there are. */
export function mainOfRoom(room: string): string {
  if (!listRooms().includes(room)) {
    throw new LocalFailure("not_found", `there is no service "${room}"; the services are ${listRooms().join(", ")}`);
  }
  return fileURLToPath(new URL(`${room}/main.ts`, servicesUrl));
}
