import type { ConnectRouter } from "@connectrpc/connect";
import { type CancelRunRequest, RunService } from "#gen/toolbus/orchestrator/v1/run_service_pb.ts";
import { principalOf } from "#runtime/rpc/identity.ts";
import { notFound, openExisting, submitOutputs } from "./run/answers.ts";
import { type CancelOptions, cancelRun } from "./run/cancellation.ts";
import { type CreationOptions, createRun } from "./run/creation.ts";
import { type ListingOptions, listRuns } from "./run/listing.ts";
import { runFromState } from "./run/view.ts";
import { type WatchOptions, watchRun } from "./run/watch.ts";

export interface RouteOptions extends CreationOptions, Omit<CancelOptions, "router">, ListingOptions, WatchOptions {
  /** Aborts when the service stops: watches end, and their clients resume elsewhere. */
  readonly stopping: AbortSignal;
}

/** The Connect edge: message → call → message. */
export function createRoutes(options: RouteOptions): (router: ConnectRouter) => void {
  return (router) => {
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
    });
  };
}
