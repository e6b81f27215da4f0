import { basename } from "node:path";
import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { LocalFailure } from "#runtime/failure/local-failure.ts";
import { msFromDuration } from "#runtime/time/duration.ts";

/** How long a server may take until it is initialised and listed. */
export interface StartTime {
  readonly ms: number;
  /** The program that may have to fetch the server first; absent for what is installed. */
  readonly installer?: string;
}

export interface StartTimes {
  startupTimeoutMs: number;
  installTimeoutMs: number;
}

/** Programs that fetch what they start, alone or by their first argument. */
const INSTALLERS = [
  ...["npx", "uvx", "bunx", "pnpx", "pnpm dlx", "yarn dlx", "npm exec", "npm x", "bun x"],
  ...["uv run", "uv tool", "pipx run", "docker run", "podman run"],
  ...["go run", "cargo run", "deno run", "nix run", "dnx", "jbang"],
];

/** By its entry, else by whether its command has to fetch it first. */
export function startTimeOf(server: McpServer, { startupTimeoutMs, installTimeoutMs }: StartTimes): StartTime {
  const installer = installerOf(server);
  const ms = msFromDuration(server.startupTimeout);
  if (installer === undefined) return { ms: ms ?? startupTimeoutMs };
  return { ms: ms ?? installTimeoutMs, installer };
}

export function installerOf({ transport }: Pick<McpServer, "transport">): string | undefined {
  if (transport.case !== "stdio") return undefined;
  const { command, args } = transport.value;
  const program = basename(command).replace(/\.(exe|cmd|bat)$/i, "");
  const words = [program, `${program} ${args.find((word) => !word.startsWith("-")) ?? ""}`];
  return INSTALLERS.find((installer) => words.includes(installer));
}

export function isProcess({ transport }: Pick<McpServer, "transport">): boolean {
  return transport.case === "stdio";
}

/** What is started or fetched, whatever else the entry of the server says; empty for a server that is none. */
export function programOf({ transport }: Pick<McpServer, "transport">): string {
  return transport.case === "stdio" ? JSON.stringify([transport.value.command, transport.value.args]) : "";
}

/** What is said of a server that was not there in its time, and what sets that time. */
export function textOfLateStart({ ms, installer }: StartTime, missed = "was not initialised"): string {
  const [fetched, setting] =
    installer === undefined ? ["", "STARTUP"] : [`, which ${installer} has to fetch and start it`, "INSTALL"];
  return `it ${missed} within ${ms} ms${fetched} (TOOLBUS_MCP_${setting}_TIMEOUT, or startupTimeout of the server)`;
}

/** A program that is missing can be fetched, unless it is the one that fetches. */
export function withWayOut(error: unknown, { installer }: StartTime): unknown {
  if (!(error instanceof LocalFailure && error.kind === "command_not_found") || installer !== undefined) return error;
  const text = `${error.message}: install it, or start the server by npx, uvx or the like, which fetch it`;
  return new Failure("unavailable", text, { reason: "MCP_SERVER_UNAVAILABLE", cause: error });
}
