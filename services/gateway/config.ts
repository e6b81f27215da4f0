import { readEnvironment } from "#runtime/config/environment.ts";
import { serviceConfigFromReader } from "#runtime/config/service-config.ts";
import { LOCAL_PRINCIPAL } from "#runtime/rpc/identity.ts";
import type { ApiKey } from "./access/api-keys.ts";

/** What each setting means is said where it is read. */
export type GatewayConfig = ReturnType<typeof readConfig>;

const loopback = new Set(["127.0.0.1", "::1", "localhost"]);

export function readConfig(env: NodeJS.ProcessEnv) {
  const reader = readEnvironment(env);
  const service = serviceConfigFromReader(reader);
  const host = reader.string("TOOLBUS_HTTP_HOST", {
    meaning: "Address to listen on. Any other than loopback needs keys.",
    default: "127.0.0.1",
  });
  const port = reader.integer("TOOLBUS_HTTP_PORT", {
    meaning: "Port to listen on; 0 takes a free one.",
    default: 7480,
    min: 0,
    max: 65_535,
  });
  const keys = reader.optionalSecret("TOOLBUS_API_KEYS", {
    meaning: "Keys of the gateway, each with the principal that it stands for.",
    form: "list of `name:KEY`, each key at least 16 characters",
    whenUnset: "no key is needed, on loopback only",
  });
  const apiKeys = apiKeysFrom(keys, () =>
    reader.fault(
      "TOOLBUS_API_KEYS",
      "a list that is not shown here",
      "a list like alice:KEY,bob:KEY, each key at least 16 characters long",
    ),
  );
  if (apiKeys.length === 0 && !loopback.has(host)) {
    reader.fault("TOOLBUS_HTTP_HOST", host, "a loopback address, unless TOOLBUS_API_KEYS holds keys");
  }
  const operators = reader.list("TOOLBUS_OPERATORS", {
    meaning:
      "Principals that may change agents, tools, providers and MCP servers, and read the whole audit trail. `local` is always one of them.",
    default: [],
  });
  const maxRequestBytes = reader.integer("TOOLBUS_MAX_REQUEST_BYTES", {
    meaning: "Largest message of a request.",
    unit: "bytes",
    default: 64 * 2 ** 20,
    min: 1024,
  });
  const corsOrigins = reader.list("TOOLBUS_CORS_ORIGINS", {
    meaning: "Origins of web pages that may call the gateway; `*` for all.",
    default: [],
  });
  reader.finish();
  return {
    ...service,
    host,
    port,
    apiKeys,
    operators: new Set([LOCAL_PRINCIPAL, ...operators]),
    maxRequestBytes,
    corsOrigins,
  };
}

function apiKeysFrom(text: string | undefined, fault: () => void): ApiKey[] {
  if (text === undefined) return [];
  const keys = text.split(",").map((entry) => {
    const [, principal = "", key = ""] = /^\s*([\w.@-]{1,256}):(\S{16,})\s*$/.exec(entry) ?? [];
    return { principal, key };
  });
  if (keys.some(({ key }) => key === "")) fault();
  return keys;
}
