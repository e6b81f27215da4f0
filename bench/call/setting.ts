import type { BusLogin } from "#runtime/bus/credentials/login.ts";
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

export interface Login {
  url: string;
  login: BusLogin;
}

/** What the caller needs to know to call each way. */
export interface CallerArguments {
  login: Login;
  gatewayUrl: string;
  baselineUrl: string;
  /** The MCP server, as a command. */
  server: readonly string[];
}

export type Way = "raw" | "internal" | "sdk" | "mcpBus" | "mcpHttp" | "unaryHttp" | "unaryBaseline";

/** What the caller's process is asked to do, and what came of it. */
export interface Order {
  way: Way;
  inFlight: number;
  durationMs: number;
}

export interface Report {
  kind: "report";
  calls: number;
  p50Ms: number;
  perSecond: number;
}

/** What the process of an MCP server or of a baseline was started with. */
export function argumentOf<T>(): T {
  return JSON.parse(process.argv[2] ?? "");
}
