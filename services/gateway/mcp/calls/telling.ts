import type { LoggingLevel, ServerContext } from "@modelcontextprotocol/server";
import { LogLevel, type ToolLog, type ToolProgress } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { CallToolResponse } from "#gen/toolbus/tool/v1/tool_service_pb.ts";

export type Tell = (event: CallToolResponse["event"]) => Promise<void>;

/** What a call tells before its result. */
export function teller({ _meta, notify, log }: ServerContext["mcpReq"], logs: boolean): Tell {
  const progressToken = _meta?.progressToken;
  let told = Number.NEGATIVE_INFINITY;
  /** MCP wants each to be more than the one before. */
  async function tellProgress({ progress, total, message }: ToolProgress): Promise<void> {
    if (progressToken === undefined || progress <= told) return;
    told = progress;
    const more = { ...(total > 0 && { total }), ...(message !== "" && { message }) };
    await notify({ method: "notifications/progress", params: { progressToken, progress, ...more } });
  }
  async function tellLog({ level, message, fieldsJson }: ToolLog): Promise<void> {
    await log(LEVELS[level] ?? "info", fieldsJson === "" ? message : { message, fields: JSON.parse(fieldsJson) });
  }
  return async (event) => {
    if (event.case === "progress") await tellProgress(event.value);
    if (event.case === "log" && logs) await tellLog(event.value);
  };
}

const LEVELS: Partial<Record<LogLevel, LoggingLevel>> = {
  [LogLevel.TRACE]: "debug",
  [LogLevel.DEBUG]: "debug",
  [LogLevel.WARN]: "warning",
  [LogLevel.ERROR]: "error",
};
