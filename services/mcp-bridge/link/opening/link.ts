import type {
  Client,
  CreateMessageRequest,
  CreateMessageResult,
  ElicitRequest,
  ElicitResult,
} from "@modelcontextprotocol/client";
import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { ToolLog } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { Failure, messageFromUnknown } from "#runtime/failure/failure.ts";
import type { InSpan } from "#runtime/telemetry/in-span.ts";
import { rootsOf } from "../../servers/roots.ts";
import { logFromNotification } from "../../tools/log.ts";
import { reopened } from "../../transport/http/reopened.ts";
import type { OpenTransport, TransportContext, TransportModule } from "../../transport/module.ts";
import { aboutServer } from "../about.ts";
import type { KnownEra } from "../era/connect-by-era.ts";
import { type ListedTools, listTools } from "../listing/list-tools.ts";
import { outcomeOf } from "../outcome/outcome.ts";
import { createServerSubscriptions, type ServerSubscriptions } from "../resources/server-subscriptions.ts";
import { tasksOf } from "../tasks/tasks.ts";
import { createLinkCalls } from "./calls.ts";
import { requestOptions } from "./client-options.ts";

export type Link = ReturnType<typeof createLink>;

export interface LinkEvents {
  onToolsChanged: () => void;
  onResourceUpdated: (uri: string) => void;
  /** The server tells of its resources no more. */
  onSubscriptionsLost: (subscriptions: ServerSubscriptions) => void;
  onLog: (log: ToolLog) => void;
  /** Of servers up to 2025-11-25, which ask a person while they hold a call open, until the signal aborts. */
  onElicit: (params: ElicitRequest["params"], signal: AbortSignal) => Promise<ElicitResult>;
  /** Has a text written by a model, for a server that may ask for one. */
  onSample: (params: CreateMessageRequest["params"], signal: AbortSignal) => Promise<CreateMessageResult>;
}

export interface LinkOptions extends LinkEvents {
  /** With its secrets resolved. */
  server: McpServer;
  module: TransportModule;
  context: TransportContext;
  /** How the server is spoken with; absent finds out. */
  era?: KnownEra | undefined;
  inSpan: InSpan;
}

/** Gives what ended the transport, if it was told as an error: a message over the limit, for example. */
export function observeErrors(client: Client, { server, context }: LinkOptions): () => string | undefined {
  let fatal: string | undefined;
  client.onerror = (error) => {
    if (error instanceof Failure) fatal = error.message;
    context.logger.debug({ server: server.name }, `MCP: ${error.message}`);
  };
  return () => fatal;
}

/** A client and its transport, initialised: they live and end together, and are never used again after that. */
export function createLink(
  options: LinkOptions,
  opened: OpenTransport,
  { client, isSse }: { client: Client; isSse: boolean },
  close: () => Promise<void>,
) {
  const { server } = options;
  const ended = Promise.withResolvers<string>();
  const closing = new AbortController();
  const lastError = observeErrors(client, options);
  client.onclose = () => {
    ended.resolve([lastError() ?? "the server is gone", opened.describeEnd?.()].filter(Boolean).join("; "));
    closing.abort();
  };
  listenToServer(client, options, closing.signal);
  const isModern = client.getProtocolEra() === "modern";
  const era: KnownEra = isSse ? "sse" : isModern ? "modern" : "legacy";
  let taskTools: ReadonlySet<string> = new Set();
  const sessionId = () => opened.transport.sessionId;
  const isTaskTool = (name: string) => taskTools.has(name);
  const { call, quiet } = createLinkCalls({ ...{ client, server, sessionId, isTaskTool }, inSpan: options.inSpan });
  const subscriptions = createServerSubscriptions(client, {
    signal: closing.signal,
    onLost: () => options.onSubscriptionsLost(subscriptions),
  });
  return {
    protocolVersion: client.getNegotiatedProtocolVersion() ?? "",
    about: aboutServer(client, server),
    era,
    /** Resolves with the reason when the link is of no use any more; never rejects. */
    ended: ended.promise,
    /** Declares the link to be of no use. */
    end: (reason: string) => ended.resolve(reason),
    async list(signal: AbortSignal): Promise<ListedTools> {
      const listed = await listTools(client, { signal, server });
      taskTools = listed.taskTools;
      return listed;
    },
    tasks: tasksOf(client, requestOptions),
    subscriptions,
    call,
    quiet,
    /** Resolves when the server has shown that it is there. */
    async check(signal: AbortSignal): Promise<void> {
      if (isModern) await client.discover(requestOptions(signal));
      else await client.ping(requestOptions(signal));
    },
    /** What an error of a call or a check means. */
    outcomeOf: (error: unknown) => outcomeOf(error, sessionId() !== undefined),
    async [Symbol.asyncDispose]() {
      ended.resolve("the connection was closed");
      closing.abort();
      await close();
    },
  };
}

/** What the server tells and asks by itself, until the signal aborts. */
function listenToServer(client: Client, options: LinkOptions, signal: AbortSignal): void {
  const { server, context } = options;
  client.setNotificationHandler("notifications/tools/list_changed", () => options.onToolsChanged());
  client.setNotificationHandler("notifications/resources/updated", ({ params }) =>
    options.onResourceUpdated(params.uri),
  );
  client.setNotificationHandler("notifications/message", ({ params }) => options.onLog(logFromNotification(params)));
  client.setRequestHandler("elicitation/create", ({ params }, { mcpReq }) => options.onElicit(params, mcpReq.signal));
  if (server.sampling) {
    client.setRequestHandler("sampling/createMessage", ({ params }, { mcpReq }) =>
      options.onSample(params, mcpReq.signal),
    );
  }
  if (server.roots.length > 0) client.setRequestHandler("roots/list", () => rootsOf(server));
  const isModern = client.getProtocolEra() === "modern";
  if (isModern && client.getServerCapabilities()?.tools?.listChanged) void listenToTools(client, options, signal);
  if (!isModern && client.getServerCapabilities()?.logging) {
    client
      .setLoggingLevel("info")
      .catch((error) => context.logger.debug(`${server.name} sets no level: ${error.message}`));
  }
}

/** Changes are told on a stream of its own since 2026-07-28. One that ends is opened again, and what was missed is read. */
function listenToTools(
  client: Client,
  { onToolsChanged, context, server }: LinkOptions,
  signal: AbortSignal,
): Promise<void> {
  const hear = async (isReopened: boolean) => {
    const subscription = await client.listen({ toolsListChanged: true }, { signal });
    if (isReopened) onToolsChanged();
    await subscription.closed;
  };
  const onError = (error: unknown) =>
    context.logger.debug(`${server.name} tells no changes: ${messageFromUnknown(error)}`);
  return reopened(hear, { signal, onError });
}
