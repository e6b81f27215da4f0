import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  Client,
  type ClientCapabilities,
  type CreateMessageRequest,
  type CreateMessageResult,
  type ElicitRequest,
  type ElicitResult,
  type InputRequiredResult,
  type InputResponses,
  LOG_LEVEL_META_KEY,
  type Progress,
} from "@modelcontextprotocol/client";
import { z } from "zod";
import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { Tool, ToolLog } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { partsOfTransport } from "#runtime/config/server-transport.ts";
import { VERSION } from "#runtime/config/version.ts";
import { Failure, messageFromUnknown } from "#runtime/failure/failure.ts";
import { mcpSpan, TOOL_ERROR } from "#runtime/telemetry/conventions.ts";
import type { InSpan } from "#runtime/telemetry/in-span.ts";
import { currentTrace } from "#runtime/telemetry/trace-context.ts";
import { delay } from "#runtime/time/delay.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { repeatUntilAborted } from "#runtime/time/retry/retry.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import { orAborted } from "#runtime/time/unless-aborted.ts";
import { refusalIn } from "../servers/login-needed.ts";
import { rootsOf } from "../servers/roots.ts";
import { type StartTime, textOfLateStart, withWayOut } from "../servers/start-time.ts";
import { logFromNotification } from "../tools/log.ts";
import { type Ask, READ_RESOURCE, readResource } from "../tools/read-resource.ts";
import { askMethod, methodOfTool } from "../tools/server-method.ts";
import { sse } from "../transport/loaded-late.ts";
import type { OpenTransport, TransportContext, TransportModule } from "../transport/module.ts";
import { aboutServer } from "./about.ts";
import { connectByEra, type KnownEra } from "./era/connect-by-era.ts";
import { type ListedTools, listTools } from "./listing/list-tools.ts";
import { outcomeOf, textOfError } from "./outcome/outcome.ts";
import { heldIn, showAnswers } from "./outcome/shown-answers.ts";
import { createServerSubscriptions, type ServerSubscriptions } from "./resources/server-subscriptions.ts";
import { callAsTask, TASKS_EXTENSION, tasksOf } from "./tasks/tasks.ts";

export type Link = ReturnType<typeof createLink>;

/** What was answered to an `input_required` result, as the server gets it. */
export interface Answers {
  inputResponses: InputResponses;
  requestState?: string;
}

export interface LinkCall {
  tool: Tool;
  /** What the server may ask on the call's behalf, since 2026-07-28. */
  capabilities: ClientCapabilities;
  answers?: Answers | undefined;
  /** Equal for each execution of one call, for servers that do once what they are asked twice (LOOP-14). */
  idempotencyKey: string;
  /** For how long the server is to keep the result of a task. */
  keepMs: number;
  arguments: Record<string, unknown>;
  onProgress: (progress: Progress) => void;
}

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

/** Where the call's own id stands in its `_meta`. */
const IDEMPOTENCY_META_KEY = "toolbus/idempotency-key";
/** The SDK's own timeout is out of the way: the signal is the deadline. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;
/** What needs nobody. */
const OWN_CAPABILITIES = { extensions: { [TASKS_EXTENSION]: {} } };
const capabilitiesOf = ({ roots, sampling }: McpServer) => ({
  ...OWN_CAPABILITIES,
  ...(sampling && { sampling: {} }),
  ...(roots.length > 0 && { roots: {} }), // a connection's never change: other roots are another connection
});
const MODERN_REVISION = "2026-07-28";

/** Opens the transport and initialises. A rejected opening has closed, or is closing, what it opened: wait for `closed`. */
export function openLink(options: LinkOptions, start: StartTime, signal: AbortSignal): Opening {
  const closing: Promise<void>[] = [];
  const time = timeoutSignal(start.ms);
  const ending = openEnding(signal, time);
  const limit = ending.signal;
  const attempt = (era: KnownEra | undefined, over: AbortSignal) =>
    openOnce(options, { era, signal: over }, start, closing);
  const isHttp = options.server.transport.case === "http";
  const link = connectByEra(attempt, { known: options.era, isHttp, start }, limit);
  const letGo = () => {
    ending[Symbol.dispose]();
    time[Symbol.dispose]();
  };
  link.then(letGo, letGo);
  return {
    link,
    closed: link.then(
      () => {},
      () => Promise.all(closing).then(() => {}),
    ),
  };
}

export interface Opening {
  link: Promise<Link>;
  /** Resolves when nothing is left of an opening that failed. */
  closed: Promise<void>;
}

async function openOnce(
  options: LinkOptions,
  connect: { era: KnownEra | undefined; signal: AbortSignal },
  start: StartTime,
  closing: Promise<void>[],
): Promise<Link> {
  const { server, context } = options;
  const { era } = connect;
  const module = era === "sse" ? sse : options.module;
  const opened = await module.open(server, context).catch((error: unknown) => {
    throw withWayOut(error, start);
  });
  const { transport } = opened;
  showAnswers(transport);
  const close = () =>
    transport.close().catch((error) => context.logger.warn({ err: error }, `closing ${server.name} failed`));
  const client = new Client(
    { name: "toolbus", version: VERSION },
    {
      capabilities: { ...capabilitiesOf(server), elicitation: { form: {}, url: {} } },
      inputRequired: { autoFulfill: false },
      versionNegotiation: {
        mode: era === "modern" ? { pin: MODERN_REVISION } : "auto",
        probe: { timeoutMs: NO_TIMEOUT_MS }, // only an answer decides; the time for starting is kept here
      },
    },
  );
  const lastError = observeErrors(client, options);
  try {
    const connecting = client.connect(transport, {
      timeout: NO_TIMEOUT_MS,
      signal: connect.signal,
      ...((era === "legacy" || era === "sse") && { prior: { kind: "legacy" as const } }),
    });
    connecting.catch(() => {}); // when the time is up first, its own end has nobody who waits for it
    await orAborted(connecting, connect.signal);
  } catch (error) {
    const isTimeUp = connect.signal.reason instanceof Error && connect.signal.reason.name === "TimeoutError";
    closing.push(close());
    const text = isTimeUp ? textOfLateStart(start) : (lastError() ?? refusalIn(error)?.message ?? textOfError(error));
    const message = [text, await lastWords(opened, closing, isTimeUp)].filter(Boolean).join("; ");
    throw new Failure("unavailable", message, { reason: "MCP_SERVER_UNAVAILABLE", cause: error });
  }
  return createLink(options, opened, { client, isSse: era === "sse" }, close);
}

/** A process that has failed says why as it goes; one that hangs is not waited for. */
async function lastWords(opened: OpenTransport, closing: Promise<void>[], isTimeUp: boolean): Promise<string> {
  if (!isTimeUp && opened.describeEnd) await Promise.race([Promise.all(closing), delay(500)]);
  return opened.describeEnd?.() ?? "";
}

/** Gives what ended the transport, if it was told as an error: a message over the limit, for example. */
function observeErrors(client: Client, { server, context }: LinkOptions): () => string | undefined {
  let fatal: string | undefined;
  client.onerror = (error) => {
    if (error instanceof Failure) fatal = error.message;
    context.logger.debug({ server: server.name }, `MCP: ${error.message}`);
  };
  return () => fatal;
}

interface Peer {
  readonly server: McpServer;
  readonly client: Client;
  readonly sessionId: string | undefined;
}

function spanOfRequest({ tool, arguments: given }: LinkCall, { server, client, sessionId }: Peer) {
  const method = tool === READ_RESOURCE ? "resources/read" : (methodOfTool(tool.name) ?? "tools/call");
  const named = method === "prompts/get" && typeof given.name === "string" ? given.name : undefined;
  const { url } = partsOfTransport(server);
  return mcpSpan({
    ...{ side: "client", method, sessionId, url: url === "" ? undefined : url },
    target: method === "tools/call" ? tool.name : named,
    protocolVersion: client.getNegotiatedProtocolVersion(),
  });
}

/** A client and its transport, initialised: they live and end together, and are never used again after that. */
function createLink(
  options: LinkOptions,
  opened: OpenTransport,
  { client, isSse }: { client: Client; isSse: boolean },
  close: () => Promise<void>,
) {
  const { server, context } = options;
  const ended = Promise.withResolvers<string>();
  const closing = new AbortController();
  const lastError = observeErrors(client, options);
  client.onclose = () => {
    ended.resolve([lastError() ?? "the server is gone", opened.describeEnd?.()].filter(Boolean).join("; "));
    closing.abort();
  };
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
  const era: KnownEra = isSse ? "sse" : isModern ? "modern" : "legacy";
  if (isModern && client.getServerCapabilities()?.tools?.listChanged) void listen(client, options, closing.signal);
  if (!isModern && client.getServerCapabilities()?.logging) {
    client
      .setLoggingLevel("info")
      .catch((error) => context.logger.debug(`${server.name} sets no level: ${error.message}`));
  }
  const calls = new Set<Promise<unknown>>();
  let taskTools: ReadonlySet<string> = new Set();
  const requestOptions = (signal: AbortSignal) => ({ signal, timeout: NO_TIMEOUT_MS });
  const subscriptions = createServerSubscriptions(client, {
    signal: closing.signal,
    onLost: () => options.onSubscriptionsLost(subscriptions),
  });
  const ask =
    (signal: AbortSignal): Ask =>
    (method, params) =>
      client.request({ method, params }, z.looseObject({}), requestOptions(signal));
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
    /** Resolves when the calls that were sent have ended, at the latest when the signal aborts. */
    async quiet(limit: AbortSignal): Promise<void> {
      await orAborted(Promise.allSettled(calls), limit).catch(() => {}); // then they are cut
    },
    /** Rejects with whatever the SDK says. The result may stand for a task (`taskIn`), or ask for something. */
    call: (request: LinkCall, signal: AbortSignal) => {
      const { name } = request.tool;
      const capabilities = { ...capabilitiesOf(server), ...request.capabilities };
      const paramsOf = () => ({
        name,
        arguments: request.arguments,
        _meta: {
          [IDEMPOTENCY_META_KEY]: request.idempotencyKey,
          ...currentTrace(), // within the span of the request
          ...(isModern && { [LOG_LEVEL_META_KEY]: "info", [CLIENT_CAPABILITIES_META_KEY]: capabilities }),
        },
        ...(isModern && request.answers),
      });
      const sending = { ...requestOptions(signal), onprogress: request.onProgress, allowInputRequired: true };
      const start = (): Promise<CallToolResult | InputRequiredResult> => {
        const method = methodOfTool(name);
        if (method !== undefined) return askMethod(ask(signal), method, request.arguments);
        if (request.tool === READ_RESOURCE) return readResource(ask(signal), request.arguments);
        const params = paramsOf();
        if (taskTools.has(name)) return callAsTask(client, { ...params, task: { ttl: request.keepMs } }, sending);
        // its definition is for headers that its schema asks for; its output schema is left to whoever reads the result
        return client.callTool(params, { ...sending, toolDefinition: definitionOf(request.tool) });
      };
      const describe = () => spanOfRequest(request, { server, client, sessionId: opened.transport.sessionId });
      const call = options.inSpan(describe, async (span) => {
        const answer = await start();
        const { isError } = heldIn(answer, "answer") ?? answer;
        if (isError) span.fail(TOOL_ERROR);
        return answer;
      });
      calls.add(call);
      const forget = () => calls.delete(call);
      call.then(forget, forget);
      return call;
    },
    /** Resolves when the server has shown that it is there. */
    async check(signal: AbortSignal): Promise<void> {
      if (isModern) await client.discover(requestOptions(signal));
      else await client.ping(requestOptions(signal));
    },
    /** What an error of a call or a check means. */
    outcomeOf: (error: unknown) => outcomeOf(error, opened.transport.sessionId !== undefined),
    async [Symbol.asyncDispose]() {
      ended.resolve("the connection was closed");
      closing.abort();
      await close();
    },
  };
}

type ToolDefinition = NonNullable<NonNullable<Parameters<Client["callTool"]>[1]>["toolDefinition"]>;

const definitions = new WeakMap<Tool, ToolDefinition>();

/** Parsed once a tool, of which there are many calls. */
function definitionOf(tool: Tool): ToolDefinition {
  const known = definitions.get(tool) ?? { name: tool.name, inputSchema: JSON.parse(tool.inputSchemaJson) };
  definitions.set(tool, known);
  return known;
}

/** Changes are told on a stream of its own since 2026-07-28. One that ends is opened again, and what was missed is read. */
async function listen(
  client: Client,
  { onToolsChanged, context, server }: LinkOptions,
  signal: AbortSignal,
): Promise<void> {
  let isFirst = true;
  const hear = async (works: () => void) => {
    const isReopened = !isFirst;
    isFirst = false;
    const subscription = await client.listen({ toolsListChanged: true }, { signal });
    if (isReopened) onToolsChanged();
    const openedAt = performance.now();
    await subscription.closed;
    if (performance.now() - openedAt > 30_000) works();
  };
  const onError = (error: unknown) =>
    context.logger.debug(`${server.name} tells no changes: ${messageFromUnknown(error)}`);
  await repeatUntilAborted(hear, { initialMs: 500, maxMs: 60_000, signal, onError });
}
