import type { ServiceImpl } from "@connectrpc/connect";
import type { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { WatchProvidedToolsResponseSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { withEtag } from "#runtime/rpc/etag.ts";
import { byOwnClock } from "#runtime/time/duration.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { callSubAgent, type FollowOptions } from "../runs/sub-agents/follow.ts";
import { provideSubAgents } from "../runs/sub-agents/provided-tools.ts";

/** The provider `agents`: the agents that an agent may call. A changed agent has a changed scope, which is listed anew. */
export function providerRoutes(options: FollowOptions): ServiceImpl<typeof ToolProviderService> {
  const { agents, stopping } = options;
  const offer = async (scope: { agent: string; principal: string } | undefined, signal: AbortSignal) => ({
    tools: await provideSubAgents(agents, scope ?? { agent: "", principal: "" }, signal),
  });
  const refused = ({ name }: { name: string }) => ({
    source: name,
    available: false,
    reason: "agents are offered without a source",
  });
  return {
    getProvidedTools: ({ scope, sources }, { signal }) =>
      sources.length > 0 ? { sources: sources.map(refused) } : offer(scope, signal),
    async *watchProvidedTools({ scope, sources }, context) {
      using ending = openEnding(context.signal, stopping);
      const signal = ending.signal;
      const told = sources.length > 0 ? { sources: sources.map(refused) } : await offer(scope, signal);
      yield withEtag(WatchProvidedToolsResponseSchema, told);
      await unlessAborted(new Promise<never>(() => {}), signal).catch(() => {}); // the end that was waited for
      if (stopping.aborted) refuse("unavailable", "this instance stops: watch again", { reason: "INSTANCE_STOPPING" });
    },
    executeTool: (request, { signal }) => callSubAgent(options, byOwnClock(request), signal),
    releaseScope: () => ({}), // what a scope's calls started belongs to the runs that called
  };
}
