import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { type CancelRunRequest, RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { callerOf } from "#runtime/rpc/identity.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { runFromState } from "./log/state/view.ts";
import { providerRoutes } from "./routes/provider-routes.ts";
import { submitOutputs } from "./runs/answer/answers.ts";
import { cancelRun } from "./runs/cancellation.ts";
import { type CreationOptions, createRun } from "./runs/create/creation.ts";
import { forkRun } from "./runs/create/fork.ts";
import { type DeletionOptions, deleteRun } from "./runs/deletion.ts";
import { openExisting } from "./runs/existing-run.ts";
import { type ListingOptions, listRuns } from "./runs/list/listing.ts";
import { type WatchRunsOptions, watchRuns } from "./runs/list/watch-runs.ts";
import type { FollowOptions } from "./runs/sub-agents/follow.ts";
import { watchRun } from "./runs/watch/watch.ts";

/** `stopping` aborts when the service stops: watches end, and their clients resume elsewhere. */
export interface RouteOptions
  extends CreationOptions,
    ListingOptions,
    DeletionOptions,
    WatchRunsOptions,
    Omit<FollowOptions, "router" | "sessions"> {}

/** The Connect edge: message → call → message. */
export function createRoutes(options: RouteOptions): (router: ConnectRouter) => void {
  return (router) => {
    router.service(ToolProviderService, providerRoutes(options));
    router.service(RunService, {
      async createRun(request, context) {
        return { run: runFromState(await createRun(options, request, byFrom(context))) };
      },
      async getRun({ runId }, context) {
        const { state } = await openExisting(options, runId, callerOf(context));
        return { run: runFromState(state) };
      },
      listRuns: (request, context) => listRuns(options, request, callerOf(context)),
      async *watchRun({ runId, fromSequence, includeDeltas, afterDelta }, context) {
        using ending = openEnding(context.signal, options.stopping);
        const cursor = afterDelta && { ...afterDelta, next: afterDelta.index + 1 };
        const request = { runId, fromSequence, includeDeltas, cursor, caller: callerOf(context) };
        yield* watchRun(options, request, ending.signal);
      },
      async *watchRuns(request, context) {
        using ending = openEnding(context.signal, options.stopping);
        for await (const update of watchRuns(options, request, callerOf(context), ending.signal)) yield { update };
      },
      async submitOutputs({ runId, outputs }, context) {
        return { run: runFromState(await submitOutputs(options, runId, outputs, byFrom(context))) };
      },
      async cancelRun({ runId, reason }: CancelRunRequest, context) {
        return { run: runFromState(await cancelRun(options, runId, { ...byFrom(context), reason })) };
      },
      async deleteRun({ runId }, context) {
        await deleteRun(options, runId, callerOf(context));
        return {};
      },
      async forkRun(request, context) {
        return { run: runFromState(await forkRun(options, request, byFrom(context))) };
      },
    });
  };
}

/** The calls that a request leads to are made on behalf of its principal; of no principal for the suite's own services. */
function byFrom(context: HandlerContext) {
  const caller = callerOf(context);
  return { signal: context.signal, caller, principal: caller.principal ?? "" };
}
