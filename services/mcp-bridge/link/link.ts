import type { Client } from "@modelcontextprotocol/client";
import { Failure } from "#runtime/failure/failure.ts";
import type { OpenTransport } from "../transport/module.ts";
import { aboutServer } from "./about.ts";
import { createLinkCalls } from "./calls.ts";
import { requestOptions } from "./client-options.ts";
import type { KnownEra } from "./era/connect-by-era.ts";
import type { LinkOptions } from "./link-options.ts";
import { listenToServer } from "./listening.ts";
import { type ListedTools, listTools } from "./listing/list-tools.ts";
import { outcomeOf } from "./outcome/outcome.ts";
import { createServerSubscriptions } from "./resources/server-subscriptions.ts";
import { tasksOf } from "./tasks/tasks.ts";

export type Link = ReturnType<typeof createLink>;

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
