// The life of a process that runs one service, or several:
//
//   reading ──▶ opening ──▶ ready ──▶ draining ──▶ exit 0
//      │           │          │           │
//      └───────────┴──────────┴───────────┴──▶ exit 1 (a failure, one clear line) · 130/143 (second signal)
//
// run-service-1  The first SIGINT or SIGTERM, or the loss of the parent that holds our IPC channel, aborts the context's signal and,
//     once open, disposes the service.
// run-service-2  A second signal exits at once. Losing the parent is no second signal: a parent that stops often goes right after.
// run-service-3  A rejection or exception that nobody handles ends the process: what holds is no longer known, and recovery from a
//     death is proven, from an unknown state not.
// run-service-4  Nothing that is open keeps the process alive after the draining: it exits by itself.
// run-service-5  Services in one process open and drain side by side, as in processes of their own. If one cannot start, the others
//     drain, and the process exits with 1.
// run-service-6  With a port for it, the process answers probes from its start to its end. It is ready once all its services are, and until
//     it is asked to stop.

import { withSecretFiles } from "../config/secrets/secret-files.ts";
import { messageFromUnknown } from "../failure/failure.ts";
import { type ConfiguredService, configureService, runToEnd, type ServiceStart } from "./configured-service.ts";
import { createLogger, type Logger } from "./logger.ts";
import { faultOfNode } from "./node/faults.ts";
import { collectBuffersWithHeap, collectGarbageOfStart } from "./node/heap.ts";
import type { ServiceDefinition } from "./service.ts";
import { openStopSignal } from "./stop-signal.ts";

export type { ServiceStart } from "./configured-service.ts";
export type { OpenService, ServiceContext, ServiceDefinition, ServiceMessage } from "./service.ts";

/** Runs a service until it is stopped, and then ends the process. */
export async function runService<C>(definition: ServiceDefinition<C>): Promise<void> {
  const env = withSecretFiles(process.env);
  await runServices([{ definition: definition as ServiceDefinition<unknown>, env }]);
}

/** Runs services in this process until it is stopped, and then ends it. */
export async function runServices(starts: readonly ServiceStart[]): Promise<void> {
  collectBuffersWithHeap();
  const read = await Promise.all(starts.map(configureService));
  const services = read.filter((service) => service !== undefined);
  if (services.length < starts.length) process.exit(1);
  const logger = processLogger(services);
  endOnUnhandled(logger); // run-service-3
  const nodeFault = faultOfNode();
  if (nodeFault !== undefined) logger.warn(nodeFault);
  const stop = openStopSignal((reason, exitCode) => {
    logger.warn(`${reason} again: exiting at once`);
    process.exit(exitCode); // run-service-2
  });
  let notReady = services.length;
  await openProbesOf(services, () => notReady === 0 && !stop.signal.aborted); // run-service-6
  const onReady = () => {
    notReady -= 1;
    if (notReady === 0) collectGarbageOfStart();
  };
  const exitCodes = await Promise.all(services.map((service) => runToEnd(service, stop, onReady)));
  process.exit(Math.max(...exitCodes)); // run-service-4
}

/** Ends the process if the port cannot be had: whoever gave it would wait in vain. */
async function openProbesOf([first]: readonly ConfiguredService[], isReady: () => boolean): Promise<void> {
  const { healthPort } = first?.serviceConfig ?? {};
  if (healthPort === undefined) return;
  const { openProbes } = await import("../http/probes.ts");
  await openProbes(healthPort, isReady).catch((error: unknown) => {
    first?.logger.fatal(`${first.definition.name} cannot start: TOOLBUS_HEALTH_PORT: ${messageFromUnknown(error)}`);
    process.exit(1);
  });
}

/** For what happens to the process, which is nobody's own where services share it. */
function processLogger(services: readonly ConfiguredService[]): Logger {
  const [first] = services;
  if (services.length === 1 && first) return first.logger;
  const { logLevel: level, logFormat: format } = first?.serviceConfig ?? {};
  return createLogger({ name: "services", ...(level && { level }), ...(format && { format }) });
}

function endOnUnhandled(logger: Logger): void {
  const end = (kind: string) => (error: unknown) => {
    logger.fatal({ err: error }, `${kind}: ${messageFromUnknown(error)}`);
    process.exit(1);
  };
  process.on("uncaughtException", end("uncaught exception"));
  process.on("unhandledRejection", end("unhandled rejection"));
}
