import type { ServerContext } from "@modelcontextprotocol/server";
import type { LogLevel, ToolLog, ToolProgress } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { CallToolResponse } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { isWanted, mcpLevelOf } from "./log-levels.ts";

export type Notify = (event: CallToolResponse["event"]) => Promise<void>;

/**
 * Which log messages a client is told: those that its request names (2026-07-28), or those of its session's level and above, of which
 * an unspecified one tells none.
 */
export type Logs = "by request" | { readonly from: LogLevel };

/** Passes on the progress and the logs of a call to its client. */
export function notifier({ _meta, notify, log }: ServerContext["mcpReq"], logs: Logs): Notify {
  const progressToken = _meta?.progressToken;
  let lastProgress = Number.NEGATIVE_INFINITY;
  /** MCP wants each to be more than the one before. */
  async function notifyProgress({ progress, total, message }: ToolProgress): Promise<void> {
    if (progressToken === undefined || progress <= lastProgress) return;
    lastProgress = progress;
    const more = { ...(total > 0 && { total }), ...(message !== "" && { message }) };
    await notify({ method: "notifications/progress", params: { progressToken, progress, ...more } });
  }
  async function notifyLog({ level, message, fieldsJson }: ToolLog): Promise<void> {
    if (logs !== "by request" && !isWanted(level, logs.from)) return;
    await log(mcpLevelOf(level), fieldsJson === "" ? message : { message, fields: JSON.parse(fieldsJson) });
  }
  return async (event) => {
    if (event.case === "progress") await notifyProgress(event.value);
    if (event.case === "log") await notifyLog(event.value);
  };
}
