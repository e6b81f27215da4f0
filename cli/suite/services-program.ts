// The program of a process that runs services of a suite. Its arguments name them: `gateway=gateway-1 spaces=spaces-1`. Their
// environment is the first message of its parent (S4 in `services-process.ts`).
// A service that is alone logs to standard output; several have a pipe each, so that their lines are told apart.

import { once } from "node:events";
import { runServices } from "#runtime/lifecycle/run-service.ts";
import { definitionOfService } from "./service-names.ts";
import type { HandedEnvironment } from "./services-process.ts";

/** After the standard streams and the IPC channel. */
const firstLogDescriptor = 4;

const named = process.argv.slice(2).map((argument) => argument.split("=") as [service: string, instance: string]);
const handed = once(process, "message") as Promise<[HandedEnvironment]>;
const definitions = await Promise.all(named.map(([service]) => definitionOfService(service)));
const [environment] = await handed;
Object.assign(process.env, environment.libraries);
const starts = definitions.map((definition, index) => ({
  definition,
  env: { ...environment.services[definition.name], TOOLBUS_INSTANCE: named[index]?.[1] },
  logDescriptor: named.length === 1 ? undefined : firstLogDescriptor + index,
}));
await runServices(starts);
