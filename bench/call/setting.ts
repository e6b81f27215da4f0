import type { Login } from "../measuring/bench-suite.ts";
import type { Load } from "../measuring/latencies.ts";
/** What the processes of the measurement agree on. */
export const AGENT = "measuring";
export const SESSION = "measured";

/** A tool that nobody executes, and those of an MCP server behind stdio: one is pure, one tells its process. */
export const INTERNAL_TOOL = "echoed";
export const MCP_SERVER = "measured-server";
export const MCP_TOOL = "echo";
export const PROCESS_TOOL = "process";

/** Answered with what it was asked: what the bus alone costs between two processes. */
export const RAW_SUBJECT = "toolbus.bench.call";

/** What the caller needs to know to call each way. */
export interface CallerArguments {
  login: Login;
  gatewayUrl: string;
  baselineUrl: string;
  /** The MCP server, as a command. */
  server: readonly string[];
}

export type Way = "raw" | "internal" | "sdk" | "mcpBus" | "mcpHttp" | "unaryHttp" | "unaryBaseline";

export interface Order extends Load {
  readonly way: Way;
}
