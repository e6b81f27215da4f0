// What somebody tries on the bus whose key is for something else.

import { errors, type NatsConnection } from "@nats-io/transport-node";
import { openInbox } from "#runtime/bus/credentials/inbox.ts";

/** What the server says of a subscription: nothing, or that it is refused. */
export async function listening(connection: NatsConnection, subject: string): Promise<string> {
  const subscription = connection.subscribe(subject);
  const refused = subscription.closed.then((error) => (error ? error.message : "ended"));
  await connection.flush();
  const verdict = await Promise.race([refused, connection.flush().then(() => "allowed")]);
  subscription.unsubscribe();
  return verdict;
}

/** Likewise of a message. */
export async function sending(connection: NatsConnection, subject: string): Promise<string> {
  let refusal: string | undefined;
  const statuses = connection.status();
  const watching = (async () => {
    for await (const status of statuses) {
      if (status.type === "error" && status.error instanceof errors.PermissionViolationError)
        refusal ??= status.error.message;
    }
  })();
  connection.publish(subject, "attack", { reply: openInbox(connection) });
  await connection.flush();
  await connection.flush();
  (statuses as unknown as { stop(): void }).stop();
  await watching;
  return refusal ?? "allowed";
}

/** What a third party has no business to listen to. */
export const heard = [
  ">",
  "*.>",
  "_INBOX.>",
  "_INBOX.tool-router.>",
  "_INBOX.gateway.>",
  "_INBOX.provider.>",
  "_INBOX.provider.neighbour.>",
  "toolbus.>",
  "toolbus.rpc.>",
  "toolbus.rpc.tool-router.>",
  "toolbus.rpc.neighbour.>",
  "toolbus.rpc.*.toolbus.provider.v1.ToolProviderService.ExecuteTool",
  "toolbus.delta.*",
  "toolbus.call.>",
  "toolbus.audit.>",
  "toolbus.owner.>",
  "$JS.API.>",
  "$JS.>",
  "$KV.>",
  "$SRV.>",
  "$SYS.>",
];

/** Nor to send to. */
export const sent = [
  "toolbus.rpc.tool-router.toolbus.agent.v1.AgentService.ApplyAgent",
  "toolbus.rpc.tool-router.toolbus.tool.v1.ToolCallService.SubmitToolResult",
  "toolbus.rpc.mcp-bridge.toolbus.mcp.v1.McpServerService.ApplyMcpServer",
  "toolbus.rpc.spaces.toolbus.internal.space.v1.ToolMessageService.RecordToolMessage",
  "toolbus.rpc.orchestrator.toolbus.run.v1.RunService.CreateRun",
  "toolbus.rpc.worker-pool.toolbus.provider.v1.ToolProviderService.ExecuteTool",
  "toolbus.rpc.neighbour.toolbus.provider.v1.ToolProviderService.ExecuteTool",
  "toolbus.rpc.stranger.toolbus.provider.v1.ToolProviderService.ExecuteTool",
  "toolbus.rpc.orchestrator.cancel",
  "_INBOX.tool-router.guessed.1",
  "_INBOX.admin.guessed.1",
  "toolbus.run.run_1",
  "toolbus.wake.session_1",
  "toolbus.audit.tool-router.blocked",
  "toolbus.call.changed",
  "toolbus.owner.orchestrator.one",
  "$KV.toolbus_agents.agent",
  "$KV.toolbus_memory.key",
  "$KV.toolbus_subject_tokens.token.somebody",
  "$O.toolbus_results.M.x",
  "$JS.API.INFO",
  "$JS.API.STREAM.NAMES",
  "$JS.API.STREAM.CREATE.MINE",
  "$JS.API.STREAM.DELETE.TOOLBUS_RUNS",
  "$JS.API.STREAM.PURGE.TOOLBUS_RUNS",
  "$JS.API.STREAM.MSG.GET.TOOLBUS_RUNS",
  "$JS.API.DIRECT.GET.KV_toolbus_agents",
  "$JS.API.DIRECT.GET.KV_toolbus_memory.$KV.toolbus_memory.key",
  "$JS.API.CONSUMER.CREATE.TOOLBUS_RUNS",
  "$JS.API.CONSUMER.MSG.NEXT.TOOLBUS_WAKES.wakes",
  "$SRV.PING",
];
