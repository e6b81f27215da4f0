/** What a client may assume of a tool, as MCP's annotations say it. */
export interface Effect {
  readonly readOnlyHint: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
}

const READS: Effect = { readOnlyHint: true };

/**
 * The methods of the contract that are tools for those who look after runs. Each is named after its method, described by the
 * contract's own words and takes its request as JSON. `npm run gen` reads this, too: it imports nothing.
 */
export const EXPOSED: Readonly<Record<string, Effect>> = {
  "toolbus.run.v1.RunService.ListRuns": READS,
  "toolbus.run.v1.RunService.GetRun": READS,
  "toolbus.run.v1.RunService.WatchRun": READS,
  "toolbus.run.v1.RunService.ForkRun": { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
  "toolbus.run.v1.RunService.CancelRun": { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
  "toolbus.session.v1.SessionService.ListSessions": READS,
  "toolbus.agent.v1.AgentService.ListAgents": READS,
  "toolbus.agent.v1.AgentService.GetAgent": READS,
  "toolbus.tool.v1.ToolService.ListTools": READS,
  "toolbus.tool.v1.ToolService.ExplainTool": READS,
  "toolbus.tool.v1.ToolCallService.ListToolCalls": READS,
  "toolbus.tool.v1.ToolCallService.GetToolCall": READS,
  "toolbus.audit.v1.AuditService.ListAuditEvents": READS,
  "toolbus.audit.v1.AuditService.WatchAuditEvents": READS,
  "toolbus.mcp.v1.McpServerService.ListMcpServers": READS,
  "toolbus.mcp.v1.McpServerService.ListConnections": READS,
  "toolbus.worker.v1.WorkerService.ListWorkers": READS,
};
