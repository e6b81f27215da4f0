import { writeSync } from "node:fs";
import { isTransient } from "../bus/link/jetstream-errors.ts";
import { readServiceConfig, type ServiceConfig } from "../config/service-config.ts";
import { Failure, messageFromUnknown } from "../failure/failure.ts";
import { openTelemetry } from "../telemetry/telemetry.ts";
import { comesWithin } from "../time/comes-within.ts";
import { retryWhile } from "../time/retry/retry.ts";
import { createLogger, type Logger, openLogDestination } from "./logger.ts";
import { type OpenService, type ServiceContext, type ServiceDefinition, tellParent } from "./service.ts";
import type { StopSignal } from "./stop-signal.ts";

/** One of the services that a process runs. */
export interface ServiceStart {
  definition: ServiceDefinition<unknown>;
  env: NodeJS.ProcessEnv;
  /** The file descriptor of its log; standard output unless told. */
  logDescriptor?: number | undefined;
}

export interface ConfiguredService {
  definition: ServiceDefinition<unknown>;
  config: unknown;
  serviceConfig: ServiceConfig;
  logger: Logger;
}

/** Undefined if the configuration cannot be read, which has been told then. */
export async function configureService(start: ServiceStart): Promise<ConfiguredService | undefined> {
  const { definition, env, logDescriptor } = start;
  const { name } = definition;
  try {
    const config = definition.readConfig(env);
    const serviceConfig = readServiceConfig(env);
    const { instance, logLevel: level, logFormat: format } = serviceConfig;
    const destination = openLogDestination(logDescriptor ?? 1);
    return { definition, config, serviceConfig, logger: createLogger({ name, instance, level, format, destination }) };
  } catch (error) {
    const message = `${name} cannot start: ${messageFromUnknown(error)}`;
    writeSync(logDescriptor ?? 2, `${message}\n`);
    await tellParent({ kind: "failed", service: name, message });
    return undefined;
  }
}

/** Opens the service, and closes it when the process is asked to stop. Resolves with the code to exit with. */
export async function runToEnd(configured: ConfiguredService, stop: StopSignal, onReady: () => void): Promise<number> {
  const { definition, serviceConfig, logger } = configured;
  const { name, hasMetrics } = definition;
  const { instance, otlpEndpoint } = serviceConfig;
  const telemetry = await openTelemetry({ service: name, instance, otlpEndpoint, hasMetrics });
  const context: ServiceContext = { name, instance, logger, signal: stop.signal, telemetry };
  const service = await openOrTell(configured, context);
  if (service === undefined) {
    if (stop.signal.aborted) return 0;
    stop.ask(new Error(`${name} cannot start`));
    return 1;
  }
  if (!stop.signal.aborted) {
    const announcement = service.announcement ?? {};
    logger.info({ pid: process.pid, ...announcement }, "ready");
    await tellParent({ kind: "ready", service: name, announcement });
    onReady();
    await stop.asked;
  }
  logger.info(`stopping: ${messageFromUnknown(stop.signal.reason)}`);
  return drain(definition, service, context);
}

async function openOrTell(
  { definition, config }: ConfiguredService,
  context: ServiceContext,
): Promise<OpenService | undefined> {
  const onRetry = (error: unknown) =>
    context.logger.warn(
      `${definition.name} starts again: the bus was lost before it was ready: ${messageFromUnknown(error)}`,
    );
  const waits = { initialMs: 100, maxMs: 2_000, signal: context.signal, onRetry };
  try {
    return await retryWhile(isBusLost, () => definition.openService(config, context), waits);
  } catch (error) {
    if (context.signal.aborted) {
      context.logger.info(`stopped before it was ready: ${messageFromUnknown(context.signal.reason)}`);
      return undefined;
    }
    const message = `${definition.name} cannot start: ${messageFromUnknown(error)}`;
    // A failure says what to do; of anything else, whoever mends it needs the stack.
    context.logger.fatal(error instanceof Failure ? {} : { err: error }, message);
    await tellParent({ kind: "failed", service: definition.name, message });
    return undefined;
  }
}

/** The bus is waited for when it is opened; one that goes before the service is ready is waited for again. */
function isBusLost(error: unknown): boolean {
  return error instanceof Failure ? error.reason === "BUS_UNAVAILABLE" : isTransient(error);
}

/** The code to exit with. */
async function drain(
  { drainTimeoutMs = 30_000 }: ServiceDefinition<unknown>,
  service: OpenService,
  { logger, telemetry }: ServiceContext,
): Promise<number> {
  const close = async () => {
    await service[Symbol.asyncDispose]();
    await telemetry[Symbol.asyncDispose]();
  };
  try {
    if (await comesWithin(drainTimeoutMs, close())) {
      logger.info("stopped");
      return 0;
    }
    logger.error(`not drained after ${drainTimeoutMs} ms: exiting`);
  } catch (error) {
    logger.error({ err: error }, `stopping failed: ${messageFromUnknown(error)}`);
  }
  return 1;
}
