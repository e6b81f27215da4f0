import { delimiter, dirname } from "node:path";
import { fetchedUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { confinementFromReader } from "#runtime/config/confinement.ts";
import { type EnvironmentReader, readEnvironment } from "#runtime/config/environment.ts";
import { publicUrlFromReader } from "#runtime/config/public-url.ts";
import { runServersFromReader } from "#runtime/config/run-servers.ts";
import { secretsFromReader } from "#runtime/config/secrets/secrets.ts";
import { serviceConfigFromReader } from "#runtime/config/service-config.ts";
import { addressRulesFromReader } from "#runtime/http/address-rules.ts";
import { KEY_BYTES } from "./auth/sealing.ts";

/** What each setting means is said where it is read. */
export type McpBridgeConfig = ReturnType<typeof readConfig>;

/** Enough to find programs, a home and a language; nothing that might be a secret. */
const PASSED_ON = [
  ...["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"],
  ...["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"],
];

function loginKeysFrom(reader: EnvironmentReader): Uint8Array[] {
  const name = "TOOLBUS_MCP_LOGIN_KEY";
  const given = reader.optionalSecret(name, {
    meaning:
      "Key that encrypts logins at MCP servers, the same at all bridges: 32 bytes in base64. Of several, by commas, the first encrypts and each decrypts.",
    form: "keys",
    whenUnset: "`toolbus up` makes one in its directory; else nobody can log in to MCP servers",
  });
  const keys = (given ?? "").split(",").filter((text) => text.trim() !== "");
  const bytes = keys.map((text) => Buffer.from(text.trim(), "base64"));
  if (bytes.some(({ length }) => length !== KEY_BYTES)) reader.faultOfSecret(name, `${KEY_BYTES} bytes in base64`);
  return bytes;
}

/** The suite's Node and uv are found where the machine has none. */
function withOwnPrograms(environment: Record<string, string>): Record<string, string> {
  const paths = [environment.PATH ?? "", dirname(process.execPath), dirname(fetchedUv())];
  return { ...environment, PATH: paths.filter(Boolean).join(delimiter) };
}

export function readConfig(env: NodeJS.ProcessEnv) {
  const reader = readEnvironment(env);
  const service = serviceConfigFromReader(reader);
  const inherited = reader.list("TOOLBUS_MCP_ENVIRONMENT", {
    meaning: "Names of further variables that MCP servers inherit when they are started as processes.",
    form: "list of names",
    default: [],
  });
  const callTimeoutMs = reader.milliseconds("TOOLBUS_MCP_CALL_TIMEOUT", {
    meaning: "How long a call may take, unless its server's entry says otherwise (`callTimeout`).",
    default: 30_000,
    whenUnset: "what a call from outside a run asks for, else 30 s",
    min: 1,
  });
  const passedOn = new Set([...PASSED_ON, ...inherited]);
  const config = {
    ...service,
    secrets: secretsFromReader(reader, "Secret NAME, which `env` and `headers` of MCP servers may name."),
    /** What a server that is started as a process gets, beside what its own `env` says. */
    environment: withOwnPrograms(reader.inherited((name) => passedOn.has(name))),
    confinement: confinementFromReader(reader, service),
    idleTimeoutMs: reader.milliseconds("TOOLBUS_MCP_IDLE_TIMEOUT", {
      meaning: "A connection that nobody uses for so long is closed.",
      default: 600_000,
      min: 1,
    }),
    maxProcesses: reader.integer("TOOLBUS_SHARE_PROCESSES", {
      meaning:
        "MCP servers that one bridge runs as processes for the sessions of one principal; those that sessions share (`share`) do not count. For one more, the one that is idle longest is closed; if all are in use, it is refused.",
      default: 200,
      min: 1,
    }),
    startupTimeoutMs: reader.milliseconds("TOOLBUS_MCP_STARTUP_TIMEOUT", {
      meaning:
        "How long a server may take until it is initialized and its tools are listed, unless the server's entry says otherwise.",
      default: 5_000,
      min: 1,
    }),
    installTimeoutMs: reader.milliseconds("TOOLBUS_MCP_INSTALL_TIMEOUT", {
      meaning:
        "The same for a server whose command may have to fetch it first: `npx`, `uvx`, `bunx`, `pnpm dlx`, `go run`, `docker run` and the like.",
      default: 300_000,
      min: 1,
    }),
    callTimeoutMs,
    /** Told of each tool, where an operator has set it. */
    toolTimeoutMs: env.TOOLBUS_MCP_CALL_TIMEOUT?.trim() ? callTimeoutMs : undefined,
    maxMessageBytes: reader.integer("TOOLBUS_MCP_MAX_MESSAGE_BYTES", {
      meaning: "A longer message of a server ends its connection; over HTTP, the call that it answers.",
      unit: "bytes",
      default: 64 * 2 ** 20,
      min: 1_024,
    }),
    transportModules: reader.list("TOOLBUS_MCP_TRANSPORTS", {
      meaning: "Modules that add transports; each exports a `transport`.",
      form: "list of modules",
      default: [],
    }),
    /** Encrypt what is stored of logins; the first does, each opens. */
    loginKeys: loginKeysFrom(reader),
    publicUrl: publicUrlFromReader(reader),
    authAllow: addressRulesFromReader(
      reader,
      "TOOLBUS_MCP_AUTH_ALLOW",
      "Addresses that are not public, at which the authorization servers that MCP servers name may be reached all the same.",
    ),
    runServers: runServersFromReader(reader),
    runAllow: addressRulesFromReader(
      reader,
      "TOOLBUS_MCP_RUN_ALLOW",
      "Addresses that are not public, at which MCP servers of runs may be reached all the same.",
    ),
  };
  reader.finish();
  return config;
}
