import { randomBytes } from "node:crypto";
import { type EnvironmentReader, readEnvironment } from "./environment.ts";

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFormat = "json" | "pretty";

/** What every service reads, whatever its trade. */
export interface ServiceConfig {
  /** One URL or several separated by commas. */
  natsUrl: string;
  /** The directory of the key that this process signs by, and of the list of those that it trusts. */
  busCredentials: string;
  /** Tells the processes of one service apart; the same for the whole life of the process. */
  instance: string;
  logLevel: LogLevel;
  logFormat: LogFormat;
  /** The base URL of an OpenTelemetry collector over HTTP; without it nothing is recorded. */
  otlpEndpoint?: string;
  /** Where the process tells that it lives and is ready; without it nobody can ask. */
  healthPort?: number;
  /** Copies of each stream and bucket in JetStream; unset keeps what stands, and creates one. */
  replicas?: 1 | 3;
}

/** A default that must not differ between two readings in one process. */
const processInstance = randomBytes(4).toString("hex");

export function readServiceConfig(env: NodeJS.ProcessEnv): ServiceConfig {
  const reader = readEnvironment(env);
  const config = serviceConfigFromReader(reader);
  reader.finish();
  return config;
}

/** For a service's `readConfig`, which reads its own variables with the same reader and finishes it: one list of all faults. */
export function serviceConfigFromReader(reader: EnvironmentReader): ServiceConfig {
  const urls = reader.list("NATS_URL", {
    meaning: "One NATS server, or several of one cluster. With `tls://`, one without TLS is refused.",
    form: "list of URLs",
    default: ["nats://127.0.0.1:4222"],
  });
  const busCredentials = reader.path("TOOLBUS_BUS_CREDENTIALS", {
    meaning:
      "Directory with the key that the service signs by, `<service>.nk`, and the list of keys that it trusts, `trust.json`.",
    default: ".toolbus/bus",
  });
  const otlpEndpoint = endpointFrom(reader, "OTEL_EXPORTER_OTLP_ENDPOINT");
  return {
    natsUrl: busFromUrls(reader, urls),
    busCredentials,
    instance: instanceFrom(reader),
    logLevel: reader.string("TOOLBUS_LOG_LEVEL", {
      meaning: "Log lines below this level are left out.",
      default: "info",
      oneOf: LOG_LEVELS,
    }),
    logFormat: reader.string("TOOLBUS_LOG_FORMAT", {
      meaning: "Log lines as JSON, or in colors for people.",
      default: "json",
      oneOf: ["json", "pretty"],
    }),
    ...(otlpEndpoint !== undefined && { otlpEndpoint }),
    ...healthPortFrom(reader),
    ...replicasFrom(reader),
  };
}

/** Services sign in with keys, so that a URL holds no secret and may be logged. */
function busFromUrls(reader: EnvironmentReader, urls: string[]): string {
  const fault = (text: string, wanted: string) => reader.fault("NATS_URL", withoutCredentials(text), wanted);
  const bare: string[] = [];
  for (const text of urls) {
    const url = URL.parse(text.includes("://") ? text : `nats://${text}`);
    if (!url?.hostname || !["nats:", "tls:"].includes(url.protocol)) {
      fault(text, "a URL like nats://127.0.0.1:4222");
      continue;
    }
    if (url.username || url.password)
      fault(text, "a URL without user and password: TOOLBUS_BUS_CREDENTIALS has the keys");
    bare.push(`${url.protocol}//${url.host}`);
  }
  return bare.join(",");
}

function withoutCredentials(text: string): string {
  return text.replace(/^(.*:\/\/)?.*@/, "$1");
}

/** An instance is a token of subjects and names of consumers, so it keeps to their letters. */
function instanceFrom(reader: EnvironmentReader): string {
  const instance = reader.string("TOOLBUS_INSTANCE", {
    meaning: "Name of this process among those of its service.",
    form: "1 to 64 letters, digits, `_`, `-`",
    default: processInstance,
    whenUnset: "eight random hex digits",
  });
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(instance))
    reader.fault("TOOLBUS_INSTANCE", instance, "1 to 64 letters, digits, _ or -");
  return instance;
}

function healthPortFrom(reader: EnvironmentReader): Pick<ServiceConfig, "healthPort"> {
  const name = "TOOLBUS_HEALTH_PORT";
  const text = reader.optionalString(name, {
    meaning:
      "Port on which `serve` answers `/livez` and `/readyz` for a supervisor, on all addresses, without a key. It is ready from when it takes work until it is asked to stop.",
    form: "whole number from 1 up to 65535",
    whenUnset: "it does not listen",
  });
  if (text === undefined) return {};
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) reader.fault(name, text, "a whole number from 1 to 65535");
  return { healthPort: port };
}

function replicasFrom(reader: EnvironmentReader): Pick<ServiceConfig, "replicas"> {
  const text = reader.optionalString("TOOLBUS_REPLICAS", {
    meaning: "Copies of every stream and bucket. A service that starts with it set changes those that exist.",
    form: "`1`, `3`",
    whenUnset: "what exists is kept; what is created gets 1",
  });
  if (text === undefined) return {};
  if (text !== "1" && text !== "3") reader.fault("TOOLBUS_REPLICAS", text, "1 or 3");
  return { replicas: text === "3" ? 3 : 1 };
}

function endpointFrom(reader: EnvironmentReader, name: string): string | undefined {
  const text = reader.optionalString(name, {
    meaning: "Traces are sent to this OpenTelemetry collector, over HTTP.",
    form: "URL like `http://127.0.0.1:4318`",
    whenUnset: "no traces",
  });
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  if (url?.protocol !== "http:" && url?.protocol !== "https:")
    reader.fault(name, withoutCredentials(text), "a URL like http://127.0.0.1:4318");
  return text.replace(/\/+$/, "");
}
