import { createRequire } from "node:module";
import { type DestinationStream, type Logger, type LoggerOptions, pino, stdSerializers, stdTimeFunctions } from "pino";
import type { LogFormat, LogLevel } from "../config/service-config.ts";
import { visibleLog } from "../content/visible/visible.ts";
import { currentTrace, logFieldsFromTrace } from "../telemetry/trace-context.ts";

export type { Logger } from "pino";

/** Where a service tells its operator what happened: the part of a logger that most code needs. */
export interface OperatorLog {
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

export interface LoggerSettings {
  name: string;
  instance?: string;
  level?: LogLevel;
  format?: LogFormat;
  /** Standard output unless told; a program that speaks a protocol there gives another. */
  destination?: DestinationStream;
}

/** Values that must never stand in a log, wherever an object that holds them is logged. */
const SECRET_PATHS = ["secrets", "password", "seed", "authorization", "apiKey"].flatMap((key) => [key, `*.${key}`]);

/**
 * A structured log: one JSON line an entry, or lines for people. It writes at once, so nothing is lost when the process
 * exits right after. Lines that are written inside a trace carry `trace_id` and `span_id`.
 */
export function createLogger(settings: LoggerSettings): Logger {
  const { name, instance, level = "info", format = "json" } = settings;
  const options: LoggerOptions = {
    level,
    base: { service: name, ...(instance !== undefined && { instance }) },
    timestamp: stdTimeFunctions.isoTime,
    redact: { paths: SECRET_PATHS, censor: "[secret]" },
    serializers: { err: wordsOfError },
    formatters: { level: (label) => ({ level: label }) },
    mixin: () => logFieldsFromTrace(currentTrace()),
  };
  const destination = settings.destination ?? openLogDestination(1);
  return pino(options, visible(format === "pretty" ? forPeople(destination) : destination));
}

/** What an error says: libraries hang whole requests and answers on theirs, with all that people wrote and what lets them in. */
function wordsOfError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { type, message, stack, code, reason, statusCode } = stdSerializers.err(error);
  const inner = error instanceof AggregateError ? { aggregateErrors: error.errors.map(wordsOfError) } : {};
  return { type, message, stack, code, reason, statusCode, ...inner };
}

/** Writes at once to a file descriptor. */
export function openLogDestination(descriptor: number): DestinationStream {
  return pino.destination({ dest: descriptor, sync: true });
}

/** What tools and servers said stands in logs too, and logs are read on terminals. */
function visible(destination: DestinationStream): DestinationStream {
  return { write: (line) => void destination.write(visibleLog(line)) };
}

/** Its package is loaded only here: most services log JSON, and all would hold it. */
function forPeople(destination: DestinationStream): DestinationStream {
  const { PinoPretty } = createRequire(import.meta.url)("pino-pretty") as typeof import("pino-pretty");
  return PinoPretty({
    destination,
    ignore: "service,instance,trace_id,span_id",
    messageFormat: "{service} · {msg}",
    singleLine: true,
    translateTime: "SYS:HH:MM:ss.l",
    sync: true,
  });
}
