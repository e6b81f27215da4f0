import type { ServerContext } from "@modelcontextprotocol/server";
import type { LogLevel, ToolLog, ToolProgress } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { CallToolResponse } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { isWanted, mcpLevelOf } from "./log-levels.ts";

export type Tell = (event: CallToolResponse["event"]) => Promise<void>;

/**
 * Which log messages a client is told: those that its request names (2026-07-28), or those of its session's level and above, of which
 * an unspecified one tells none.
 */
export type Logs = "by request" | { readonly from: LogLevel };

/** What a call tells before its result. */
export function teller({ _meta, notify, log }: ServerContext["mcpReq"], logs: Logs): Tell {
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
    if (logs !== "by request" && !isWanted(level, logs.from)) return;
    await log(mcpLevelOf(level), fieldsJson === "" ? message : { message, fields: JSON.parse(fieldsJson) });
  }
  return async (event) => {
    if (event.case === "progress") await tellProgress(event.value);
    if (event.case === "log") await tellLog(event.value);
  };
}
