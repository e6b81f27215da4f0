import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_servers_pb.ts";
import {
  type CallToolRequest,
  type CallToolResponse,
  type ListToolsRequest,
  type ListToolsResponse,
  ListToolsResponseSchema,
  type OfferedTool,
  type Scope,
  type SourceStatus,
  SourceStatusSchema,
  type WatchToolsRequest,
  type WatchToolsResponse,
} from "#gen/toolbus/tool/v1/provider_pb.ts";
import { messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import type { Connections, Located } from "./connections.ts";
import { type AppliedServers, serverOfSource, sourceOfServer } from "./servers.ts";

/** Another instance of the bridge, asked for what it owns. */
export interface Peer {
  listTools(
    request: Pick<ListToolsRequest, "sources"> & { scope: Scope | undefined },
    signal: AbortSignal,
  ): Promise<ListToolsResponse>;
  watchTools(
    request: Pick<WatchToolsRequest, "sources"> & { scope: Scope | undefined },
    signal: AbortSignal,
  ): AsyncIterable<WatchToolsResponse>;
  callTool(request: CallToolRequest, signal: AbortSignal): AsyncIterable<CallToolResponse>;
}

/** Who asks. A request that has been forwarded too often goes in circles. */
export interface Asker {
  signal: AbortSignal;
  hops: number;
}

export interface ProviderParts {
  connections: Connections;
  applied: AppliedServers;
  peerOf: (instance: string, hops: number) => Peer;
  /** Whether an error says that the other instance has not begun. */
  isNotSent: (error: unknown) => boolean;
  callTimeoutMs: number;
}

/** What one source offers. */
export interface SourceOffer {
  tools: OfferedTool[];
  status: SourceStatus;
}

export type Provider = ReturnType<typeof createProvider>;

const MAX_HOPS = 3;
/** An instance that owns and does not answer is gone; then its key is taken over. */
const MAX_ATTEMPTS = 4;

export function createProvider(parts: ProviderParts) {
  const { connections, applied } = parts;

  async function listTools(request: ListToolsRequest, asker: Asker): Promise<ListToolsResponse> {
    const { scope } = request;
    const sources = request.sources.length > 0 ? request.sources : applied.list().map(sourceOfServer);
    const offers = await Promise.all(sources.map((source) => offerOf(source, scope, asker)));
    return create(ListToolsResponseSchema, {
      tools: offers.flatMap(({ tools }) => tools),
      sources: offers.map(({ status }) => status),
    });
  }

  /** Never rejects but for the signal: a source that fails is a status. */
  async function offerOf(source: AskedSource, scope: Scope | undefined, asker: Asker): Promise<SourceOffer> {
    try {
      const server = serverOfSource(source, applied);
      return await atOwner(server, scope, asker, {
        async here({ connection, hold }) {
          using _ = hold;
          await connection.settled(asker.signal);
          return connection.offer();
        },
        async there(peer) {
          const forwarded = { scope, sources: [forwardedSource(server)] };
          return offerFromList(source.name, await peer.listTools(forwarded, asker.signal));
        },
      });
    } catch (error) {
      asker.signal.throwIfAborted();
      return failedOffer(source.name, messageFromUnknown(error));
    }
  }

  async function* callTool(request: CallToolRequest, asker: Asker): AsyncGenerator<CallToolResponse> {
    const { source = refuse("invalid_argument", "a tool of an MCP server is called with its source"), scope } = request;
    const server = serverOfSource(source, applied);
    const deadlineMs = request.deadline ? timestampMs(request.deadline) : Date.now() + parts.callTimeoutMs;
    const forwarded = { ...request, source: forwardedSource(server) };
    const call = {
      callId: request.callId,
      sessionId: scope?.sessionId ?? "",
      tool: request.tool,
      argumentsJson: request.argumentsJson,
      deadlineMs,
      signal: asker.signal,
    };
    for (let attempt = 1; ; attempt++) {
      const located = await connections.locate(server, scope, asker.signal);
      if (located.kind === "here") {
        using _ = located.hold;
        yield* located.connection.call(call);
        return;
      }
      try {
        yield* peerAt(located.instance, asker).callTool(forwarded, asker.signal);
        return;
      } catch (error) {
        if (attempt === MAX_ATTEMPTS || !parts.isNotSent(error)) throw error;
      }
    }
  }

  /** Asks the owner, and asks again who it is when that one has not begun. */
  async function atOwner<R>(
    server: McpServer,
    scope: Scope | undefined,
    asker: Asker,
    ask: { here: (located: Located & { kind: "here" }) => Promise<R>; there: (peer: Peer) => Promise<R> },
  ): Promise<R> {
    for (let attempt = 1; ; attempt++) {
      const located = await connections.locate(server, scope, asker.signal);
      if (located.kind === "here") return ask.here(located);
      try {
        return await ask.there(peerAt(located.instance, asker));
      } catch (error) {
        if (attempt === MAX_ATTEMPTS || !parts.isNotSent(error)) throw error;
      }
    }
  }

  function peerAt(instance: string, { hops }: Asker): Peer {
    if (hops >= MAX_HOPS) {
      refuse("unavailable", "the owner of the connection keeps changing", { reason: "OWNER_UNSETTLED" });
    }
    return parts.peerOf(instance, hops + 1);
  }

  return { listTools, callTool, peerAt };
}

export type AskedSource = ReturnType<typeof sourceOfServer>;

export function failedOffer(source: string, reason: string): SourceOffer {
  return { tools: [], status: create(SourceStatusSchema, { source, reason }) };
}

export function offerFromList(source: string, listed: Pick<ListToolsResponse, "tools" | "sources">): SourceOffer {
  const [status] = listed.sources;
  return status ? { tools: listed.tools, status } : failedOffer(source, "its owner says nothing of it");
}

export function forwardedSource(server: McpServer) {
  return { $typeName: "toolbus.tool.v1.Source" as const, ...sourceOfServer(server) };
}
