import { resolve } from "node:path";
import { type Credentials, readCredentials } from "#runtime/config/access/gateway-credentials.ts";
import { readLoginSettings } from "#runtime/config/access/login-settings.ts";
import { type EnvironmentReader, readEnvironment } from "#runtime/config/environment.ts";
import { publicUrlFromReader } from "#runtime/config/public-url.ts";
import { serviceConfigFromReader } from "#runtime/config/service-config.ts";
import { isLoopback } from "#runtime/http/loopback.ts";
import { LOCAL_PRINCIPAL } from "#runtime/rpc/identity.ts";
import type { CertificatePaths } from "./access/certificate.ts";

/** What each setting means is said where it is read. */
export type GatewayConfig = ReturnType<typeof readConfig>;

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
  const { auth, apiKeys, tokens } = readCredentials(reader);
  if (auth === "none" && !isLoopback(host))
    reader.fault("TOOLBUS_HTTP_HOST", host, "a loopback address, as TOOLBUS_AUTH is none");
  const operators = reader.list("TOOLBUS_OPERATORS", {
    meaning:
      "Principals that may change agents, tools, providers and MCP servers, and read the whole audit trail. `local` is always one of them.",
    default: [],
  });
  const defaultGrant = reader.list("TOOLBUS_DEFAULT_GRANT", {
    meaning:
      "Principals for whom agents, spaces and external tools without grants are; `*` for all. The same at all gateways. Operators always may.",
    default: [],
    whenUnset: "the one principal that has a key; operators alone if there are several, or tokens are taken",
  });
  const consoleLogin = readLoginSettings(reader, tokens);
  const componentsDirectory = reader.path("TOOLBUS_UI", {
    meaning:
      "Directory of components that draw the questions of tools in the console. They run with the key of whoever looks.",
    default: "ui",
  });
  const publicUrl = publicUrlFromReader(reader);
  const tls = tlsFrom(reader);
  const maxRequestBytes = reader.integer("TOOLBUS_MAX_REQUEST_BYTES", {
    meaning:
      "Largest message of a request. The requests in flight on one connection hold four times that, and so do the answers that a principal leaves unread; its requests in flight on all connections hold eight times that. What is of a principal may hold 256 MiB at least.",
    unit: "bytes",
    default: 64 * 2 ** 20,
    min: 1024,
  });
  const corsOrigins = reader.list("TOOLBUS_CORS_ORIGINS", {
    meaning: "Origins of web pages that may call the gateway; `*` for all.",
    default: [],
  });
  if (auth === "none" && corsOrigins.includes("*")) {
    const expected =
      "the origins of your own pages: without keys (TOOLBUS_AUTH is none), every page of the web could call";
    reader.fault("TOOLBUS_CORS_ORIGINS", "*", expected);
  }
  const share = (name: string, meaning: string, value: number) =>
    reader.integer(name, { meaning: `${meaning} More is refused, and says so.`, default: value, min: 1 });
  const shares = {
    requestsPerSecond: share(
      "TOOLBUS_SHARE_REQUESTS",
      "Requests a second of one principal at one gateway; those of two seconds may come at once.",
      10_000,
    ),
    calls: share("TOOLBUS_SHARE_CALLS", "Unary calls that one principal has in flight at one gateway.", 4_000),
    streams: share("TOOLBUS_SHARE_STREAMS", "Streams that one principal has open at one gateway.", 10_000),
    connections: share(
      "TOOLBUS_SHARE_CONNECTIONS",
      "Connections that one address has open at one gateway. From half of them on, those of HTTP/1.1 end with their answer. All that come through a proxy are of one address.",
      10_000,
    ),
  };
  reader.finish();
  return {
    ...service,
    host,
    port,
    auth,
    apiKeys,
    tokens,
    consoleLogin,
    componentsDirectory,
    tls,
    publicUrl,
    isLoopback: isLoopback(host),
    operators: new Set([LOCAL_PRINCIPAL, ...operators]),
    defaultGrant: new Set([
      ...operators,
      ...(defaultGrant.length > 0 ? defaultGrant : soleHolder({ apiKeys, tokens })),
    ]),
    maxRequestBytes,
    maxHeldBytes: Math.max(256 * 2 ** 20, 8 * maxRequestBytes),
    maxStrangerBytes: 8 * maxRequestBytes,
    maxUnreadBytes: Math.max(256 * 2 ** 20, 4 * maxRequestBytes),
    shares,
    corsOrigins,
  };
}

/** Nobody is kept apart from the only one. */
function soleHolder({ apiKeys, tokens }: Pick<Credentials, "apiKeys" | "tokens">): string[] {
  const holders = new Set(apiKeys.map(({ principal }) => principal).filter((name) => name !== LOCAL_PRINCIPAL));
  return holders.size === 1 && tokens === undefined ? [...holders] : [];
}

function tlsFrom(reader: EnvironmentReader): CertificatePaths | undefined {
  const certFile = reader.optionalString("TOOLBUS_TLS_CERT_FILE", {
    meaning: "Certificate of the gateway with those of its issuers, as PEM. It is read again when it changes.",
    form: "path",
    whenUnset: "the gateway speaks without TLS",
  });
  const keyFile = reader.optionalString("TOOLBUS_TLS_KEY_FILE", {
    meaning: "Key of that certificate, as PEM, without a passphrase.",
    form: "path",
  });
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined)
    reader.fault("TOOLBUS_TLS_CERT_FILE", undefined, "the certificate of TOOLBUS_TLS_KEY_FILE");
  if (keyFile === undefined) reader.fault("TOOLBUS_TLS_KEY_FILE", undefined, "the key of TOOLBUS_TLS_CERT_FILE");
  return { certFile: resolve(certFile ?? ""), keyFile: resolve(keyFile ?? "") };
}
