/** Which MCP servers runs may bring along: what operators say, and what is wrong with one. */

import type { EnvironmentReader } from "./environment.ts";

const kinds = ["none", "http", "all"] as const;

/** None, those at `http://` and `https://` URLs, or commands and other transports too. */
export type RunServers = (typeof kinds)[number];

export function runServersFromReader(reader: EnvironmentReader): RunServers {
  const name = "TOOLBUS_MCP_RUN_SERVERS";
  const given = reader.string(name, {
    meaning:
      "MCP servers that a run may bring along: none, those at `http` and `https` URLs, or all, which includes commands.",
    form: kinds.map((kind) => `\`${kind}\``).join(", "),
    default: "http",
  });
  const kind = kinds.find((one) => one === given);
  if (kind === undefined) reader.fault(name, given, kinds.join(", "));
  return kind ?? "none";
}

export interface BroughtServer {
  readonly url: string;
  readonly command: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
}

/** Why a run may not bring the server; undefined when it may. */
export function faultOfRunServer(kind: RunServers, { url, command, headers, env }: BroughtServer): string | undefined {
  if (kind === "none") return "is refused: runs may bring no MCP servers here (TOOLBUS_MCP_RUN_SERVERS)";
  if ((url === "") === (command === "")) return "needs either a url or a command";
  if (kind === "http" && command !== "") {
    return "is refused: runs may bring no commands here, only servers over HTTP (TOOLBUS_MCP_RUN_SERVERS)";
  }
  const parsed = url === "" ? undefined : URL.parse(url);
  if (parsed === null) return "has a url that is none";
  if (kind === "http" && parsed !== undefined && !["http:", "https:"].includes(parsed.protocol)) {
    return "is refused: runs may bring only servers at http and https URLs here (TOOLBUS_MCP_RUN_SERVERS)";
  }
  const values = [...Object.values(headers), ...Object.values(env)];
  if (values.some((value) => value.includes("${secret:"))) return "names a secret of the suite, which no run may";
  return undefined;
}
