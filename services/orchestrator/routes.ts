import type { ConnectRouter } from "@connectrpc/connect";
import { type CancelRunRequest, RunService } from "#gen/toolbus/orchestrator/v1/run_service_pb.ts";
import { ToolProviderService } from "#gen/toolbus/tool/v1/provider_pb.ts";
import { principalOf } from "#runtime/rpc/identity.ts";
import { providerRoutes } from "./routes/provider-routes.ts";
import { notFound, openExisting, submitOutputs } from "./run/answers.ts";
import { cancelRun } from "./run/cancellation.ts";
import { type CreationOptions, createRun } from "./run/creation.ts";
import { forkRun } from "./run/fork.ts";
import { type ListingOptions, listRuns } from "./run/listing.ts";
import { runFromState } from "./run/view.ts";
import { watchRun } from "./run/watch.ts";
import type { FollowOptions } from "./sub-agents/follow.ts";

/** `stopping` aborts when the service stops: watches end, and their clients resume elsewhere. */
export interface RouteOptions extends CreationOptions, ListingOptions, Omit<FollowOptions, "router" | "sessions"> {}

/** The Connect edge: message → call → message. */
export function createRoutes(options: RouteOptions): (router: ConnectRouter) => void {
  return (router) => {
    router.service(ToolProviderService, providerRoutes(options));
    router.service(RunService, {
      async createRun(request, { signal, requestHeader }) {
        const by = { signal, principal: principalOf(requestHeader) };
        return { run: runFromState(await createRun(options, request, by)) };
      },
      async getRun({ runId }) {
        const { state } = await openExisting(options, runId);
        return { run: runFromState(state ?? notFound(runId)) };
      },
      listRuns: (request) => listRuns(options, request),
      async *watchRun({ runId, fromSequence, includeDeltas, afterDelta }, { signal }) {
        const cursor = afterDelta && { ...afterDelta, next: afterDelta.n + 1 };
        const request = { runId, fromSequence, includeDeltas, cursor };
        yield* watchRun(options, request, AbortSignal.any([signal, options.stopping]));
      },
      async submitOutputs({ runId, outputs }) {
        return { run: runFromState(await submitOutputs(options, runId, outputs)) };
      },
      async cancelRun({ runId, reason }: CancelRunRequest, { requestHeader, signal }) {
        const by = { principal: principalOf(requestHeader), reason, signal };
        return { run: runFromState(await cancelRun(options, runId, by)) };
      },
      async forkRun(request, { requestHeader, signal }) {
        const by = { principal: principalOf(requestHeader), signal };
        return { run: runFromState(await forkRun(options, request, by)) };
      },
    });
  };
}
