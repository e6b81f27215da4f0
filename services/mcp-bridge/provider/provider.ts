import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { InputKind } from "#gen/toolbus/provider/v1/input_pb.ts";
import {
  type ExecuteToolRequest,
  type ExecuteToolResponse,
  type GetProvidedToolsRequest,
  type GetProvidedToolsResponse,
  GetProvidedToolsResponseSchema,
  type Scope,
  ScopeSchema,
  type WatchProvidedToolsRequest,
  type WatchProvidedToolsResponse,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { SourceSchema } from "#gen/toolbus/tool/v1/source_pb.ts";
import type { RunServers } from "#runtime/config/run-servers.ts";
import { messageFromUnknown, refuse, refuseRequest } from "#runtime/failure/failure.ts";
import { delay } from "#runtime/time/delay.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import { createBackoff } from "#runtime/time/retry/backoff.ts";
import type { Connection } from "../connection/connection.ts";
import type { AskedConnection, Connections } from "../connection/connections.ts";
import type { WatchEvent } from "../link/resources/resource-watches.ts";
import { holderOf } from "../servers/key.ts";
import { type AppliedServers, serverOfSource, sourceOfServer, sourcesOf } from "../servers/servers.ts";
import { type AskedSource, failedOffer, offerFromList, type SourceOffer } from "./offer.ts";
import type { FoundSource, ResourceOfSession } from "./session-sources.ts";

/** Set by an instance that asks another one for what that has itself. */
export const PEER_HEADER = "toolbus-bridge-own-part";
/** The same in release 0.2.0, which counts in it, and passes on what comes with less than 3. */
export const HOPS_HEADER = "toolbus-bridge-hops";

/** Another instance of the bridge, asked for what it owns. */
export interface Peer {
  listTools(
    request: Pick<GetProvidedToolsRequest, "sources"> & { scope: Scope | undefined },
    signal: AbortSignal,
  ): Promise<GetProvidedToolsResponse>;
  watchTools(
    request: Pick<WatchProvidedToolsRequest, "sources"> & { scope: Scope | undefined },
    signal: AbortSignal,
  ): AsyncIterable<WatchProvidedToolsResponse>;
  callTool(request: ExecuteToolRequest, signal: AbortSignal): AsyncIterable<ExecuteToolResponse>;
  watchResource(resource: ResourceOfSession, signal: AbortSignal): AsyncIterable<WatchEvent>;
}

/** Who asks. What another instance asks for is told of this one alone: it looks for the owner again itself. */
export interface Asker {
  signal: AbortSignal;
  isPeer: boolean;
}

export interface ProviderParts {
  connections: Connections;
  applied: AppliedServers;
  peerOf: (instance: string) => Peer;
  /** Whether an error says that the other instance has not begun: it is gone, or gives its connections away. */
  hasNotBegun: (error: unknown) => boolean;
  callTimeoutMs: number;
  /** Which servers runs may bring along. */
  runServers: RunServers;
}

/** An instance that stops lets its calls end and closes its servers before another one may open them. */
const HANDOVER_MS = 20_000;
const HANDOVER_WAITS = { initialMs: 20, maxMs: 250 };

/** Tools and calls of servers, wherever the connection is: here, or at another instance, which is asked for it. */
export class Provider {
  readonly #parts: ProviderParts;

  constructor(parts: ProviderParts) {
    this.#parts = parts;
  }

  async listTools(request: GetProvidedToolsRequest, asker: Asker): Promise<GetProvidedToolsResponse> {
    const { scope } = request;
    const sources = request.sources.length > 0 ? request.sources : sourcesOf(this.#parts.applied);
    const offers = await Promise.all(sources.map((source) => this.#offerOf(source, scope, asker)));
    return create(GetProvidedToolsResponseSchema, {
      tools: offers.flatMap(({ tools }) => tools),
      sources: offers.map(({ status }) => status),
    });
  }

  async *callTool(request: ExecuteToolRequest, asker: Asker): AsyncGenerator<ExecuteToolResponse> {
    const missing = { field: "source", message: "is required" };
    const source = request.source ?? refuseRequest("a tool of an MCP server is called with its source", missing);
    const asked = this.askedOf(source, request.scope);
    const call = this.#callFrom(request, asker);
    yield* this.#askOwner(asked, asker, {
      here: (connection) => connection.call(call),
      there: (peer) =>
        peer.callTool({ ...request, source: sourceOfServer(asked.server, source.fromRun) }, asker.signal),
    });
  }

  /** Ends with the connection, wherever it is. */
  watchResource({ scope, source, uri }: FoundSource & { uri: string }, asker: Asker): AsyncGenerator<WatchEvent> {
    const asked = this.askedOf(create(SourceSchema, source), create(ScopeSchema, scope));
    const resource = { sessionId: scope.sessionId ?? "", source: source.name ?? "", uri };
    return this.#askOwner(asked, asker, {
      here: (connection) => connection.watchResource(uri, scope.principal ?? "", asker.signal),
      there: (peer) => peer.watchResource(resource, asker.signal),
    });
  }

  /** The connection that a source means in a scope. */
  askedOf(source: AskedSource, scope: Scope | undefined): AskedConnection {
    const server = serverOfSource(source, this.#parts.applied, this.#parts.runServers);
    const principal = scope?.sessionId ? scope.principal : ""; // what is listed outside of a session is nobody's
    return { server, holder: holderOf(server, scope, source.fromRun), principal };
  }

  /** Never rejects but for the signal, or for another instance: a source that fails is a status. */
  async #offerOf(source: AskedSource, scope: Scope | undefined, asker: Asker): Promise<SourceOffer> {
    try {
      const asked = this.askedOf(source, scope);
      const forwarded = { scope, sources: [sourceOfServer(asked.server, source.fromRun)] };
      const offers = this.#askOwner(asked, asker, {
        here: (connection) => settledOffer(connection, asker.signal),
        async *there(peer) {
          yield offerFromList(source.name, await peer.listTools(forwarded, asker.signal));
        },
      });
      const [offer] = await Array.fromAsync(offers);
      return offer!;
    } catch (error) {
      asker.signal.throwIfAborted();
      if (asker.isPeer) throw error;
      return failedOffer(source.name, messageFromUnknown(error));
    }
  }

  /** What the connection says here, or the instance that has it; looked up again where that one has not begun. */
  async *#askOwner<T>(
    asked: AskedConnection,
    asker: Asker,
    ask: { here: (connection: Connection) => AsyncIterable<T>; there: (peer: Peer) => AsyncIterable<T> },
  ): AsyncGenerator<T> {
    const handover = this.#openHandover(asker.signal);
    for (;;) {
      const located = await this.#parts.connections.locate(asked, asker.signal);
      if (located.kind === "here") {
        using _ = located.hold;
        yield* ask.here(located.connection);
        return;
      }
      if (asker.isPeer) refuse("unavailable", "the connection has another owner", { reason: "OWNER_CHANGED" });
      try {
        yield* ask.there(this.#parts.peerOf(located.instance));
        return;
      } catch (error) {
        await handover(error);
      }
    }
  }

  #callFrom(request: ExecuteToolRequest, { signal }: Asker) {
    const { callId, scope, tool, argumentsJson, deadline, longestTimeout } = request;
    const { acceptedInputs, inputResponses: responses } = request;
    const { sessionId = "", principal = "" } = scope ?? {};
    // what a run brought is nothing that may spend its money
    const accepted = acceptedInputs.filter((kind) => kind !== InputKind.SAMPLING || request.source?.fromRun !== true);
    const longestMs = msFromDuration(longestTimeout);
    return {
      ...{ callId, sessionId, principal, tool, argumentsJson, signal, accepted, responses },
      deadlineMs: deadline ? timestampMs(deadline) : Date.now() + this.#parts.callTimeoutMs,
      latestMs: longestMs === undefined ? undefined : Date.now() + longestMs,
    };
  }

  /** Waits until the owner may be looked up again, which was asked and has not begun; throws what is no reason to. */
  #openHandover(signal: AbortSignal): (error: unknown) => Promise<void> {
    const backoff = createBackoff(HANDOVER_WAITS);
    const untilMs = performance.now() + HANDOVER_MS;
    return async (error) => {
      if (!this.#parts.hasNotBegun(error) || performance.now() > untilMs) throw error;
      await delay(backoff.next(), signal);
    };
  }
}

async function* settledOffer(connection: Connection, signal: AbortSignal): AsyncGenerator<SourceOffer> {
  await connection.settled(signal);
  yield connection.offer();
}
