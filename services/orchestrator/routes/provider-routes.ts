import type { ServiceImpl } from "@connectrpc/connect";
import type { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import {
  type WatchProvidedToolsRequest,
  WatchProvidedToolsResponseSchema,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { withEtag } from "#runtime/rpc/etag.ts";
import { untilWatchEnds } from "#runtime/rpc/watching/constant.ts";
import { refusedSources } from "#runtime/rpc/watching/without-sources.ts";
import { byOwnClock } from "#runtime/time/duration.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { callSubAgent, type FollowOptions } from "../runs/sub-agents/follow.ts";
import { provideSubAgents } from "../runs/sub-agents/provided-tools.ts";

type Asked = Pick<WatchProvidedToolsRequest, "scope" | "sources">;

/** The provider `agents`: the agents that an agent may call. A changed agent has a changed scope, which is listed anew. */
export function providerRoutes(options: FollowOptions): ServiceImpl<typeof ToolProviderService> {
  const { agents, stopping } = options;
  const offer = async ({ scope, sources }: Asked, signal: AbortSignal) => {
    if (sources.length > 0) return refusedSources("agents", sources);
    return { tools: await provideSubAgents(agents, scope ?? { agent: "", principal: "" }, signal) };
  };
  return {
    getProvidedTools: (request, { signal }) => offer(request, signal),
    async *watchProvidedTools(request, { signal }) {
      using ending = openEnding(signal, stopping);
      yield withEtag(WatchProvidedToolsResponseSchema, await offer(request, ending.signal));
      await untilWatchEnds(signal, stopping);
    },
    executeTool: (request, { signal }) => callSubAgent(options, byOwnClock(request), signal),
    releaseScope: () => ({}), // what a scope's calls started belongs to the runs that called
  };
}
