import type { ServiceImpl } from "@connectrpc/connect";
import type { CallerDeclaration } from "#gen/toolbus/caller/v1/caller_pb.ts";
import type { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { WatchProvidedToolsResponseSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { Source } from "#gen/toolbus/tool/v1/source_pb.ts";
import { refuseField } from "#runtime/failure/failure.ts";
import { withEtag } from "#runtime/rpc/etag.ts";
import { refusedSources } from "#runtime/rpc/watching/without-sources.ts";
import { byOwnClock } from "#runtime/time/duration.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { toolsFromDeclaration } from "../declarations/declaration.ts";
import type { Declarations } from "../delivery/declarations.ts";
import type { Relay } from "../delivery/relay.ts";
import { eventsOf } from "./call-events.ts";

export interface ProviderRouteParts {
  declarations: Declarations;
  relay: Relay;
  defaultTimeoutMs: number;
  isClosed: (sessionId: string) => Promise<boolean>;
  /** Ends its caller's streams, in whichever instance, and removes what was declared; gives how many there were. */
  forget: (sessionId: string) => Promise<number>;
  /** Ends watches when the service stops, with what their clients are told. */
  stopping: AbortSignal;
}

/** The tools of a session's caller as those of any provider. They belong to no source; outside of a session there are none. */
export function providerRoutes(parts: ProviderRouteParts): ServiceImpl<typeof ToolProviderService> {
  const { declarations, relay, defaultTimeoutMs, stopping } = parts;

  const offer = (declaration: CallerDeclaration | undefined, sources: readonly Source[]) => {
    if (sources.length > 0) return refusedSources("the caller's tools", sources);
    const tools = declaration ? toolsFromDeclaration(declaration, defaultTimeoutMs) : [];
    return { tools: tools.map((tool) => ({ source: "", tool, resumable: true })), sources: [] };
  };

  return {
    async getProvidedTools({ scope, sources }) {
      return offer(scope?.sessionId ? await declarations.read(scope.sessionId) : undefined, sources);
    },
    async *watchProvidedTools({ scope, sources }, context) {
      const sessionId = scope?.sessionId || refuseField("scope.session_id", "is required");
      using ending = openEnding(context.signal, stopping);
      for await (const declaration of declarations.follow(sessionId, ending.signal))
        yield withEtag(WatchProvidedToolsResponseSchema, offer(declaration, sources));
      stopping.throwIfAborted();
    },
    executeTool: (request, { signal }) => eventsOf((tell) => relay.call(byOwnClock(request), { signal, tell })),
    /** The caller stays with its session, whatever agent that has, and leaves when it is closed or forgotten. */
    async releaseScope({ scope, forgetsSession }) {
      const sessionId = scope?.sessionId ?? "";
      if (scope?.runId !== "" || sessionId === "") return {};
      if (!forgetsSession && !(await parts.isClosed(sessionId))) return {};
      return { closedCount: await parts.forget(sessionId) };
    },
  };
}
