import { readEnvironment } from "#runtime/config/environment.ts";
import { secretsFromReader } from "#runtime/config/secrets/secrets.ts";
import { serviceConfigFromReader } from "#runtime/config/service-config.ts";
import { addressRulesFromReader } from "#runtime/http/address-rules.ts";
import { maxResultBytesFromReader } from "#runtime/results/shortened.ts";

/** What each setting means is said where it is read. */
export type Config = ReturnType<typeof readConfig>;

/** A further provider of tools. */
interface Provider {
  name: string;
  address: { case: "service" | "url"; value: string };
}

export function readConfig(env: NodeJS.ProcessEnv) {
  const reader = readEnvironment(env);
  const entries = reader.list("TOOLBUS_PROVIDERS", {
    meaning: "Further providers of tools, by service on the bus or by URL.",
    form: "list of `name=service` or `name=url`",
    default: [],
  });
  const providers = entries.map((entry) => ({ entry, parsed: providerFrom(entry) }));
  for (const { entry, parsed } of providers) {
    if (parsed === undefined) reader.fault("TOOLBUS_PROVIDERS", entry, "name=service or name=url");
  }
  const transports = reader.list("TOOLBUS_MCP_TRANSPORTS", {
    meaning: "The value that the mcp-bridge has. When it is set, this service accepts unknown names of transports.",
    form: "list of modules",
    default: [],
  });
  const gatewayAllow = addressRulesFromReader(
    reader,
    "TOOLBUS_GATEWAY_ALLOW",
    "Addresses that are not public, which GATEWAY tools may reach all the same.",
  );
  const config = {
    ...serviceConfigFromReader(reader),
    agentsDirectory: reader.path("TOOLBUS_AGENTS", {
      meaning: "Directory of agents; a file is read again when it changes.",
      default: "agents",
    }),
    toolsDirectory: reader.path("TOOLBUS_TOOLS", {
      meaning: "Directory of tools; a file is read again when it changes.",
      default: "tools",
    }),
    providers: providers.flatMap(({ parsed }) => parsed ?? []),
    gatewayAllow,
    gatewayMaxResponseBytes: reader.integer("TOOLBUS_GATEWAY_MAX_RESPONSE", {
      meaning: "Largest response of a GATEWAY tool.",
      unit: "bytes",
      default: 8 * 2 ** 20,
      min: 1_024,
    }),
    secrets: secretsFromReader(
      reader,
      "Secret NAME, for headers of GATEWAY tools. A tool that names a secret that is not set is refused.",
    ),
    maxResultBytes: maxResultBytesFromReader(reader),
    providerStartupMs: reader.milliseconds("TOOLBUS_PROVIDER_STARTUP", {
      meaning: "How long a provider may take to list its tools; then the others are shown without it.",
      default: 5_000,
      min: 1,
    }),
    questionMs: reader.milliseconds("TOOLBUS_QUESTION_TIMEOUT", {
      meaning:
        "How long a person may take to answer what a tool asks while it is called. The call's own time stands still.",
      default: 3_600_000,
      min: 1_000,
    }),
    contextIdleMs: reader.milliseconds("TOOLBUS_CONTEXT_IDLE", {
      meaning:
        "How long the router follows the tools of a session that nobody uses. With many sessions it may stop earlier.",
      default: 60_000,
      min: 1_000,
    }),
    switchDrainMs: reader.milliseconds("TOOLBUS_SWITCH_DRAIN", {
      meaning: "How long calls in flight may take when a session is closed or gets another agent.",
      default: 5_000,
      min: 0,
    }),
    acknowledgeMs: reader.milliseconds("TOOLBUS_WATCHER_ACKNOWLEDGE", {
      meaning: "How long a watcher may leave a call unacknowledged; then another watcher gets the call.",
      default: 5_000,
      min: 100,
    }),
    workerStartupMs: reader.milliseconds("TOOLBUS_WORKER_STARTUP", {
      meaning: "How long installing a worker's dependencies may take, in addition to the time of the call.",
      default: 180_000,
      min: 0,
    }),
    hasOtherTransports: transports.length > 0,
  };
  reader.finish();
  return config;
}

function providerFrom(entry: string): Provider | undefined {
  const [, name, place] = /^([a-zA-Z0-9_-]{1,64})=(\S+)$/.exec(entry) ?? [];
  if (name === undefined || place === undefined) return undefined;
  if (/^(https?|grpcs?):\/\/[^/]/.test(place)) return { name, address: { case: "url", value: place } };
  return /^[a-zA-Z0-9_-]{1,64}$/.test(place) ? { name, address: { case: "service", value: place } } : undefined;
}
