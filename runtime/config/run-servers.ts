/** Which MCP servers runs may bring along: what operators say, and what is wrong with one. */

import { AuthGrant, type McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { faultOfHeaderValue, faultsOfHeaderNames } from "../http/header-syntax.ts";
import type { EnvironmentReader } from "./environment.ts";
import { partsOfTransport } from "./server-transport.ts";

const kinds = ["none", "http", "all"] as const;

/** None, those at `http://` and `https://` URLs, or commands and other transports too. */
export type RunServers = (typeof kinds)[number];

export function runServersFromReader(reader: EnvironmentReader): RunServers {
  return reader.string("TOOLBUS_MCP_RUN_SERVERS", {
    meaning:
      "MCP servers that a run may bring along: none, those at `http` and `https` URLs, or all, which includes commands.",
    oneOf: kinds,
    default: "http",
  });
}

/** What is wrong with a server, and with which field of its transport; no field for the server as a whole. */
export interface ServerFault {
  readonly field: string;
  readonly message: string;
}

/** Why a run may not bring the server; empty when it may. */
export function faultsOfRunServer(kind: RunServers, server: Pick<McpServer, "transport" | "auth">): ServerFault[] {
  const { url, command, headers, env } = partsOfTransport(server);
  const fault = (field: string, message: string) => [{ field, message }];
  if (kind === "none") return fault("", "is refused: runs may bring no MCP servers here (TOOLBUS_MCP_RUN_SERVERS)");
  if ((url === "") === (command === "")) return fault("", "needs either a url or a command");
  if (kind === "http" && command !== "") {
    const message = "is refused: runs may bring no commands here, only servers over HTTP (TOOLBUS_MCP_RUN_SERVERS)";
    return fault("command", message);
  }
  const parsed = url === "" ? undefined : URL.parse(url);
  if (parsed === null) return fault("url", "has a url that is none");
  if (kind === "http" && parsed !== undefined && !["http:", "https:"].includes(parsed.protocol)) {
    const message = "is refused: runs may bring only servers at http and https URLs here (TOOLBUS_MCP_RUN_SERVERS)";
    return fault("url", message);
  }
  const { clientSecret = "", privateKey = "", grant } = server.auth ?? {};
  if (grant === AuthGrant.TOKEN_EXCHANGE)
    return fault("auth.grant", "exchanges the token of a person, which goes where an operator says alone");
  const named = { "auth.clientSecret": clientSecret, "auth.privateKey": privateKey };
  const texts = [
    ["url", url],
    ...valuesOf("headers", headers),
    ...valuesOf("env", env),
    ...Object.entries(named),
  ] as const;
  const secret = texts.find(([, value]) => value.includes("${secret:"));
  if (secret !== undefined) return fault(secret[0], "names a secret of the suite, which no run may");
  return faultsOfServerHeaders(headers);
}

/** The headers that no HTTP request can have. */
export function faultsOfServerHeaders(headers: Readonly<Record<string, string>>): ServerFault[] {
  const names = faultsOfHeaderNames(Object.keys(headers)).map(({ name, fault }) => [name, fault] as const);
  const values = Object.entries(headers).map(([name, value]) => [name, faultOfHeaderValue(value)] as const);
  return [...names, ...values].flatMap(([name, fault]) =>
    fault === undefined
      ? []
      : [{ field: pathOf("headers", name), message: `has the header ${JSON.stringify(name)}, which ${fault}` }],
  );
}

function valuesOf(map: string, entries: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(entries).map(([key, value]) => [pathOf(map, key), value]);
}

const pathOf = (map: string, key: string) => `${map}[${JSON.stringify(key)}]`;
