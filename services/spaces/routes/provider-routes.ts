import type { ServiceImpl } from "@connectrpc/connect";
import type { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { WatchProvidedToolsResponseSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { Source } from "#gen/toolbus/tool/v1/source_pb.ts";
import { isOwner } from "#runtime/failure/session-owner.ts";
import { withEtag } from "#runtime/rpc/etag.ts";
import { callerOf } from "#runtime/rpc/identity.ts";
import { untilWatchEnds } from "#runtime/rpc/watching/constant.ts";
import { refusedSources } from "#runtime/rpc/watching/without-sources.ts";
import type { Rooms } from "../built-ins/built-in.ts";

/** The built-in tools as a provider like any other. They belong to no source and never change. */
export function providerRoutes(rooms: Rooms, stopping: AbortSignal): ServiceImpl<typeof ToolProviderService> {
  return {
    getProvidedTools: (request) => offerFor(request.sources),
    async *watchProvidedTools(request, context) {
      yield withEtag(WatchProvidedToolsResponseSchema, await offerFor(request.sources));
      await untilWatchEnds(context.signal, stopping);
    },
    async *executeTool(request, context) {
      const { sessionId = "", agent = "", principal = "" } = request.scope ?? {};
      const caller = callerOf(context);
      const isByOwner = principal === "" || isOwner(principal, caller);
      const call = { callId: request.callId, sessionId, agent, principal, isByOwner };
      const { callBuiltIn } = await builtIns();
      const result = await callBuiltIn(rooms, request.tool, call, request.argumentsJson);
      yield { event: { case: "result", value: result } };
    },
    releaseScope: () => ({}), // what belongs to a session and agent waits for the agent's return
  };
}

/** Loaded with the first session: what their arguments are described with takes 10 MB. */
const builtIns = () => import("../built-ins/built-ins.ts");

/** Without sources the same for whoever asks, and in whatever scope. */
async function offerFor(sources: readonly Source[]) {
  if (sources.length === 0) {
    const { builtInTools } = await builtIns();
    return { tools: builtInTools.map((tool) => ({ source: "", tool })), sources: [], sameInAllScopes: true };
  }
  return refusedSources("the tools of spaces", sources);
}
