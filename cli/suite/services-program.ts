// The program of a process that runs services of a suite. Its arguments name them: `gateway=gateway-1 spaces=spaces-1`.
// A service that is alone logs to standard output; several have a pipe each, so that their lines are told apart.

import { runServices } from "#runtime/lifecycle/run-service.ts";
import { definitionOfService } from "./service-names.ts";

/** After the standard streams and the IPC channel. */
const firstLogDescriptor = 4;

const named = process.argv.slice(2).map((argument) => argument.split("=") as [service: string, instance: string]);
const starts = named.map(async ([service, instance], index) => ({
  definition: await definitionOfService(service),
  env: { ...process.env, TOOLBUS_INSTANCE: instance },
  logDescriptor: named.length === 1 ? undefined : firstLogDescriptor + index,
}));
await runServices(await Promise.all(starts));
