// The life of a service's process:
//
//   reading ──▶ opening ──▶ ready ──▶ draining ──▶ exit 0
//      │           │          │           │
//      └───────────┴──────────┴───────────┴──▶ exit 1 (a failure, one clear line) · 130/143 (second signal)
//
// L1  The first SIGINT or SIGTERM, or the loss of the parent that holds our IPC channel, aborts the context's signal and,
//     once open, disposes the service.
// L2  A second signal exits at once. Losing the parent is no second signal: a parent that stops often goes right after.
// L3  A rejection or exception that nobody handles ends the process: what holds is no longer known, and recovery from a
//     death is proven, from an unknown state not.
// L4  Nothing that is open keeps the process alive after the draining: it exits by itself.

import { readServiceConfig } from "../config/service-config.ts";
import { Failure, messageFromUnknown } from "../failure/failure.ts";
import { openTelemetry, type Telemetry } from "../telemetry/telemetry.ts";
import { createLogger, type Logger } from "./logger.ts";
import { openStopSignal } from "./stop-signal.ts";

export interface ServiceContext {
  name: string;
  instance: string;
  logger: Logger;
  /** Aborts at the first signal to stop: waits that take long listen to it. */
  signal: AbortSignal;
  telemetry: Telemetry;
}

/** An open service. What it announces stands in its ready line and goes to its parent: addresses, for example. */
export interface OpenService extends AsyncDisposable {
  readonly announcement?: Record<string, unknown>;
}

export interface ServiceDefinition<C> {
  name: string;
  /** Whether metrics are recorded, for a service that serves them. */
  hasMetrics?: boolean;
  /** How long disposing may take before the process gives it up and exits with 1; 30 s unless told. */
  drainTimeoutMs?: number;
  readConfig: (env: NodeJS.ProcessEnv) => C;
  openService: (config: C, context: ServiceContext) => Promise<OpenService>;
}

/** What a service tells the parent that started it with an IPC channel. */
export type ServiceMessage =
  | { kind: "ready"; announcement: Record<string, unknown> }
  | { kind: "failed"; message: string };

/** Runs a service until it is stopped, and then ends the process: the one statement of a `main.ts`. */
export async function runService<C>(definition: ServiceDefinition<C>): Promise<void> {
  const { config, serviceConfig } = await readConfigs(definition);
  const { instance, logLevel, logFormat, otlpEndpoint } = serviceConfig;
  const logger = createLogger({ name: definition.name, instance, level: logLevel, format: logFormat });
  endOnUnhandled(logger); // L3
  const stop = openStopSignal((reason, exitCode) => {
    logger.warn(`${reason} again: exiting at once`);
    process.exit(exitCode); // L2
  });
  const telemetry = await openTelemetry({
    service: definition.name,
    instance,
    otlpEndpoint,
    hasMetrics: definition.hasMetrics,
  });
  const context: ServiceContext = { name: definition.name, instance, logger, signal: stop.signal, telemetry };
  const service = await openOrExit(definition, config, context);
  if (!stop.signal.aborted) {
    const announcement = service.announcement ?? {};
    logger.info(announcement, "ready");
    await tellParent({ kind: "ready", announcement });
    await stop.asked;
  }
  logger.info(`stopping: ${messageFromUnknown(stop.signal.reason)}`);
  process.exit(await drain(definition, service, context)); // L4
}

async function readConfigs<C>(definition: ServiceDefinition<C>) {
  try {
    return { config: definition.readConfig(process.env), serviceConfig: readServiceConfig(process.env) };
  } catch (error) {
    const message = `${definition.name} cannot start: ${messageFromUnknown(error)}`;
    process.stderr.write(`${message}\n`);
    await tellParent({ kind: "failed", message });
    process.exit(1);
  }
}

async function openOrExit<C>(
  definition: ServiceDefinition<C>,
  config: C,
  context: ServiceContext,
): Promise<OpenService> {
  try {
    return await definition.openService(config, context);
  } catch (error) {
    if (context.signal.aborted) {
      context.logger.info(`stopped before it was ready: ${messageFromUnknown(context.signal.reason)}`);
      process.exit(0);
    }
    const message = `${definition.name} cannot start: ${messageFromUnknown(error)}`;
    // A failure says what to do; of anything else, whoever mends it needs the stack.
    context.logger.fatal(error instanceof Failure ? {} : { err: error }, message);
    await tellParent({ kind: "failed", message });
    process.exit(1);
  }
}

/** The code to exit with. */
async function drain<C>(
  definition: ServiceDefinition<C>,
  service: OpenService,
  context: ServiceContext,
): Promise<number> {
  const { drainTimeoutMs = 30_000 } = definition;
  setTimeout(() => {
    context.logger.error(`not drained after ${drainTimeoutMs} ms: exiting`);
    process.exit(1);
  }, drainTimeoutMs);
  try {
    await service[Symbol.asyncDispose]();
    await context.telemetry[Symbol.asyncDispose]();
    context.logger.info("stopped");
    return 0;
  } catch (error) {
    context.logger.error({ err: error }, `stopping failed: ${messageFromUnknown(error)}`);
    return 1;
  }
}

function endOnUnhandled(logger: Logger): void {
  const end = (kind: string) => (error: unknown) => {
    logger.fatal({ err: error }, `${kind}: ${messageFromUnknown(error)}`);
    process.exit(1);
  };
  process.on("uncaughtException", end("uncaught exception"));
  process.on("unhandledRejection", end("unhandled rejection"));
}

/** Resolves when the message is on its way, or cannot go any more: the loss of a parent is noticed by its signal. */
function tellParent(message: ServiceMessage): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected && process.send) process.send(message, undefined, undefined, () => resolve());
    else resolve();
  });
}
