import type { DescMessage, DescMethod, MessageInitShape } from "@bufbuild/protobuf";
import { MemoryKind } from "#gen/toolbus/space/v1/memory_pb.ts";
import { ToolMessageState } from "#gen/toolbus/space/v1/space_pb.ts";
import { Builtin, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { takesCallKey } from "#runtime/rpc/access/rules.ts";
import { input, sessionId, type World } from "./world.ts";

export type Request = MessageInitShape<DescMessage>;
type Make = (world: Pick<World, "runId">) => Record<string, unknown>;

const scope = { case: "session", value: { sessionId } };
const outcome = { case: "resultJson", value: "1" };
const agent = { sessionId, agent: "keeper" };
const source = { sessionId, source: "files" };
const member = { case: "agent", value: agent };
const entry = { kind: MemoryKind.MEMORY, key: "k", text: "t" };
const shell = {
  name: "shell",
  executionType: ExecutionType.BUILTIN,
  builtinPolicy: { builtin: Builtin.SHELL_EXEC, allowedCommands: ["sh"], allowedPaths: ["/"] },
};

/** A request for each method, for something of alice's, or for what an operator configured. */
const requests: Record<string, Make> = {
  "AgentService.ApplyAgent": () => ({ agent: { name: "new", model: { provider: "scripted", model: "keeper.json" } } }),
  "AgentService.GetAgent": () => ({ name: "sly" }),
  "AgentService.ListAgents": () => ({}),
  "AgentService.WatchAgents": () => ({}),
  "AuditService.WatchAuditEvents": () => ({ filter: { sessionId }, fromSequence: 0n }),
  "AuditService.ListAuditEvents": () => ({ filter: { sessionId } }),
  "ProviderService.ApplyProvider": () => ({
    provider: { name: "new", address: { case: "url", value: "http://127.0.0.1:9" } },
  }),
  "ProviderService.GetProvider": () => ({ name: "inside" }),
  "ProviderService.ListProviders": () => ({}),
  "SessionService.CreateSession": () => ({ sessionId, agent: "keeper" }),
  "SessionService.GetSession": () => ({ sessionId }),
  "SessionService.ListSessions": () => ({}),
  "SessionService.SwitchAgent": () => ({ sessionId, agent: "keeper" }),
  "SessionService.SetLogLevel": () => ({ sessionId }),
  "SessionService.WatchSession": () => ({ sessionId }),
  "ToolCallService.WatchToolCalls": () => ({ tools: ["nothing"] }),
  "ToolCallService.AcknowledgeToolCall": () => ({ callId: "weigh", deliveryId: "made up" }),
  "ToolCallService.SubmitToolResult": () => ({ callId: "weigh", outcome }),
  "ToolCallService.GetToolCall": () => ({ callId: "weigh" }),
  "ToolCallService.CreateCallKey": () => ({ callId: "asked" }),
  "ToolCallService.ListToolCalls": () => ({ sessionId }),
  "ToolCallService.ReadResult": () => ({ result: { case: "callId", value: "weigh" } }),
  "ToolCallService.CancelToolCall": () => ({ callId: "approve" }),
  "ToolCatalogService.ApplyCatalogTool": () => ({ tool: shell }),
  "ToolCatalogService.GetCatalogTool": () => ({ name: "fetch" }),
  "ToolCatalogService.ListCatalogTools": () => ({}),
  "ToolService.ListTools": () => ({ scope }),
  "ToolService.CallTool": () => ({ sessionId, name: "note" }),
  "ToolService.ApproveTools": () => ({ agent: "keeper" }),
  "ToolService.ExplainTool": () => ({ scope, name: "note" }),
  "RunService.CreateRun": () => ({ sessionId, input }),
  "RunService.GetRun": ({ runId }) => ({ runId }),
  "RunService.ListRuns": () => ({ sessionId }),
  "RunService.WatchRun": ({ runId }) => ({ runId, fromSequence: 0n }),
  "RunService.WatchRuns": () => ({ sessionId }),
  "RunService.SubmitOutputs": ({ runId }) => ({ runId, outputs: [{ callId: "asked", outcome }] }),
  "RunService.ForkRun": ({ runId }) => ({ runId, atSequence: 1, input }),
  "McpContentService.ListResources": () => ({ source }),
  "McpContentService.ListResourceTemplates": () => ({ source }),
  "McpContentService.ReadResource": () => ({ source, uri: "made:up" }),
  "McpContentService.SubscribeResource": () => ({ source, uri: "made:up" }),
  "McpContentService.UnsubscribeResource": () => ({ sessionId, uri: "made:up" }),
  "McpContentService.WatchResources": () => ({ sessionId, resources: [{ source: source.source, uri: "made:up" }] }),
  "McpContentService.ListPrompts": () => ({ source }),
  "McpContentService.GetPrompt": () => ({ source, name: "none" }),
  "McpContentService.Complete": () => ({ source, reference: { case: "prompt", value: "none" }, argument: "a" }),
  "McpServerService.ApplyMcpServer": () => ({
    server: { name: "new", transport: { case: "stdio", value: { command: "true" } } },
  }),
  "McpServerService.GetMcpServer": () => ({ name: "files" }),
  "McpServerService.ListMcpServers": () => ({}),
  "McpServerService.ListConnections": () => ({ sessionId }),
  "McpServerService.WatchConnections": () => ({ sessionId }),
  "McpServerService.BeginLogin": () => ({ server: "gone", redirectUri: "http://127.0.0.1:9/callback" }),
  "McpServerService.CompleteLogin": () => ({ state: "made up" }),
  "McpServerService.DeleteLogin": () => ({ server: "gone" }),
  "McpServerService.CloseConnections": () => agent,
  "CallerService.DeclareTools": () => ({ sessionId, declaration: { callerId: "app", tools: [] } }),
  "CallerService.WatchCaller": () => ({ sessionId }),
  "CallerService.WatchDeclaration": () => ({ sessionId }),
  "CallerService.Respond": () => ({ sessionId, requestId: "gone", outcome }),
  "CallerService.GetDeclaration": () => ({ sessionId }),
  "CallerService.ReportProgress": () => ({ sessionId, requestId: "gone", progress: 1 }),
  "WorkerService.ListWorkers": () => ({}),
  "WorkerService.StopWorker": () => ({ workerId: "gone" }),
  "WorkerService.WatchWorkerLogs": () => ({}),
  "InboxService.ListInboxEvents": () => agent,
  "InboxService.WatchInboxEvents": () => ({ ...agent, fromSequence: 0n }),
  "MemoryService.SetEntries": () => ({ ...agent, entries: [entry] }),
  "MemoryService.DeleteEntries": () => ({ ...agent, kind: MemoryKind.MEMORY, keys: ["other"] }),
  "MemoryService.ListEntries": () => agent,
  "SpaceService.CreateSpace": () => ({ spaceId: "hall" }),
  "SpaceService.SetSpaceGrants": () => ({ spaceId: "hall" }),
  "SpaceService.GetSpace": () => ({ spaceId: "hall" }),
  "SpaceService.ListSpaces": () => ({}),
  "SpaceService.EnterSpace": () => ({ spaceId: "hall", member }),
  "SpaceService.LeaveSpace": () => ({ spaceId: "other", member }),
  "SpaceService.GetActiveSpace": () => agent,
  "SpaceService.SendMessage": () => ({ spaceId: "hall", content: textContent("hello"), author: member }),
  "SpaceService.ListMessages": () => ({ spaceId: "hall" }),
  "SpaceService.WatchSpace": () => ({ spaceId: "hall", fromSequence: 0n }),
  "SpaceService.AnswerToolCall": () => ({ spaceId: "hall", callId: "gone", outcome }),
  "InboxDeliveryService.DeliverEvent": () => ({
    event: { eventId: "made up", ...agent, event: { case: "plan", value: { key: "k" } } },
  }),
  "InboxDeliveryService.ForgetSession": () => ({ sessionId: agent.sessionId, closed: true }),
  "InboxDeliveryService.AcknowledgeInbox": () => ({ ...agent, eventIds: ["gone"] }),
  "RunContextService.GetRunContext": () => agent,
  "ToolMessageService.RecordToolMessage": () => ({
    spaceId: "hall",
    message: { callId: "fake", tool: "approve", state: ToolMessageState.RUNNING },
    ...agent,
  }),
  "ToolProviderService.GetProvidedTools": () => ({ scope: agent }),
  "ToolProviderService.WatchProvidedTools": () => ({ scope: agent }),
  "ToolProviderService.ExecuteTool": () => ({ callId: "x", scope: agent, tool: "list_spaces", argumentsJson: "{}" }),
  "ToolProviderService.ReleaseScope": () => ({ scope: agent }),
};

/** These end what the others ask for, and come last. */
const endings: Record<string, Make> = {
  "RunService.CancelRun": ({ runId }) => ({ runId }),
  "RunService.DeleteRun": ({ runId }) => ({ runId }),
  "SessionService.CloseSession": () => ({ sessionId }),
  "McpServerService.DeleteMcpServer": () => ({ name: "files" }),
  "AgentService.DeleteAgent": () => ({ name: "sly" }),
  "ProviderService.DeleteProvider": () => ({ name: "inside" }),
  "ToolCatalogService.DeleteCatalogTool": () => ({ name: "fetch" }),
};

export const nameOf = ({ parent, name }: DescMethod) => `${parent.name}.${name}`;
export const isEnding = (method: DescMethod) => nameOf(method) in endings;

/** For a key of one call: what takes it is asked of that call. */
export function requestForKey(method: DescMethod, world: Pick<World, "runId">): Request {
  const request = requestFor(method, world);
  return takesCallKey(method) ? { ...request, callId: "asked" } : request;
}

export function requestFor(method: DescMethod, world: Pick<World, "runId">): Request {
  const make = requests[nameOf(method)] ?? endings[nameOf(method)];
  if (make === undefined) throw new Error(`${nameOf(method)} has no request here`);
  return make(world) as Request;
}
