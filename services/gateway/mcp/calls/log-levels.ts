import type { LoggingLevel } from "@modelcontextprotocol/server";
import { LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";

/** What tools log, in the words of MCP. */
export function mcpLevelOf(level: LogLevel): LoggingLevel {
  return MCP[level] ?? "info";
}

const MCP: Partial<Record<LogLevel, LoggingLevel>> = {
  [LogLevel.TRACE]: "debug",
  [LogLevel.DEBUG]: "debug",
  [LogLevel.WARN]: "warning",
  [LogLevel.ERROR]: "error",
};

/** The least level of a client that asks for that one. Above `error` tools log nothing: unspecified, which tells nothing. */
export const LEAST: Readonly<Record<LoggingLevel, LogLevel>> = {
  debug: LogLevel.TRACE,
  info: LogLevel.INFO,
  notice: LogLevel.WARN,
  warning: LogLevel.WARN,
  error: LogLevel.ERROR,
  critical: LogLevel.UNSPECIFIED,
  alert: LogLevel.UNSPECIFIED,
  emergency: LogLevel.UNSPECIFIED,
};

/** A line without a level is told as `info`. */
export function isWanted(level: LogLevel, from: LogLevel): boolean {
  return from !== LogLevel.UNSPECIFIED && (level || LogLevel.INFO) >= from;
}
