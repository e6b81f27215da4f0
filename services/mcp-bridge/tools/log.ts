import { create } from "@bufbuild/protobuf";
import { LogLevel, type ToolLog, ToolLogSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";

const LEVELS: Record<string, LogLevel> = {
  debug: LogLevel.DEBUG,
  info: LogLevel.INFO,
  notice: LogLevel.INFO,
  warning: LogLevel.WARN,
};

/**
 * A `notifications/message` as a line of a tool's log; MCP's levels above `warning` are all errors. MCP does not say which call
 * a line belongs to: with one call in flight on the connection it is that call's, with several it goes to the bridge's own log.
 */
export function logFromNotification(params: { level: string; logger?: string | undefined; data: unknown }): ToolLog {
  const { data, logger } = params;
  const isObject = typeof data === "object" && data !== null;
  const fields = { ...(logger !== undefined && { logger }), ...(isObject && { data }) };
  return create(ToolLogSchema, {
    level: LEVELS[params.level] ?? LogLevel.ERROR,
    message: textFrom(data),
    fieldsJson: Object.keys(fields).length > 0 ? JSON.stringify(fields) : "",
  });
}

function textFrom(data: unknown): string {
  if (typeof data === "string") return data;
  const isTold = typeof data === "object" && data !== null && "message" in data && typeof data.message === "string";
  return isTold ? String(data.message) : (JSON.stringify(data) ?? "");
}
