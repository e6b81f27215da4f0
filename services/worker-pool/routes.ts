import type { ConnectRouter } from "@connectrpc/connect";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import {
  type GetProvidedToolsResponse,
  ToolProviderService,
  WatchProvidedToolsResponseSchema,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { Source } from "#gen/toolbus/tool/v1/source_pb.ts";
import type { Worker as WorkerMessage } from "#gen/toolbus/worker/v1/worker_pb.ts";
import { WorkerService } from "#gen/toolbus/worker/v1/worker_service_pb.ts";
import { type Audit, auditAct } from "#runtime/audit/trail.ts";
import type { Changes } from "#runtime/collections/changes.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { withEtag } from "#runtime/rpc/etag.ts";
import { callerOf, seesAll } from "#runtime/rpc/identity.ts";
import { pageOf, placeOfNumber } from "#runtime/rpc/paging/page.ts";
import { currentTrace, logFieldsFromTrace } from "#runtime/telemetry/trace-context.ts";
import { byOwnClock } from "#runtime/time/duration.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { Part } from "./provider/fleet/fleet.ts";
import { WARM_ONLY_HEADER } from "./provider/fleet/spread-calls.ts";
import type { RunCall } from "./provider/tool-calls.ts";

export interface WorkerPoolRoutes {
  offer: (sources: readonly Source[]) => Promise<GetProvidedToolsResponse>;
  /** Of what is offered. */
  changes: Pick<Changes, "next">;
  run: RunCall;
  /** The workers of this instance, or of all. */
  part: Part;
  /** Absent where another instance asks, which tells it itself. */
  audit?: Audit;
  /** Aborts when the service begins to stop: watching would otherwise hold it up. */
  stopping: AbortSignal;
}

export function createRoutes({ offer, changes, run, part, audit, stopping }: WorkerPoolRoutes) {
  return (router: ConnectRouter): void => {
    router.service(ToolProviderService, {
      getProvidedTools: ({ sources }) => offer(sources),
      async *watchProvidedTools({ sources }, { signal }) {
        using ending = openEnding(signal, stopping);
        while (!ending.signal.aborted) {
          using change = changes.next();
          const offered = await offer(sources);
          yield withEtag(WatchProvidedToolsResponseSchema, { tools: offered.tools, sources: offered.sources });
          await unlessAborted(change.happened, ending.signal).catch(() => {}); // it ends
        }
      },
      executeTool(request, { signal, requestHeader }) {
        const isWarmOnly = requestHeader.has(WARM_ONLY_HEADER);
        return run(byOwnClock(request), { traceId: currentTraceId(), signal, isWarmOnly });
      },
      releaseScope: () => ({}), // a worker belongs to its file: what a scope needs comes with each request
    });
    router.service(WorkerService, {
      async listWorkers(request, context) {
        const isWhole = seesAll(callerOf(context));
        const { workers, refusedFiles } = await part.list(context.signal);
        const elements = isWhole ? workers : workers.map((worker) => ({ ...worker, reason: "" })); // it cites what was written to stderr
        const { items, nextPageToken } = pageOf(["workers"], { elements, placeOf: placeOfWorker }, request);
        return { workers: items, refusedFiles: isWhole && request.pageToken === "" ? refusedFiles : [], nextPageToken };
      },
      async stopWorker({ workerId, force }, context) {
        if (!(await part.stop(workerId, force, context.signal)))
          refuse("not_found", `there is no worker ${workerId}`, { reason: "WORKER_NOT_FOUND" });
        const did = `worker ${workerId} was stopped${force ? " in its calls" : ""}`;
        if (audit) auditAct(audit, callerOf(context), { kind: AuditKind.STOPPED }, did);
        return {};
      },
      async *watchWorkerLogs({ source, principal: asked }, context) {
        using ending = openEnding(context.signal, stopping);
        const caller = callerOf(context);
        const principal = seesAll(caller) ? asked : (caller.principal ?? "");
        if (!seesAll(caller) && (principal === "" || (asked !== "" && asked !== principal)))
          refuse("permission_denied", "lines of other principals' calls are for operators", {
            reason: "PRINCIPAL_NOT_OPERATOR",
          });
        for await (const update of part.watchLogs({ source, principal }, ending.signal)) yield { update };
      },
    });
  };
}

function placeOfWorker({ source, file, processId, id }: WorkerMessage): string {
  return [source, file, placeOfNumber(BigInt(processId)), id].join("\0");
}

function currentTraceId(): string {
  return logFieldsFromTrace(currentTrace()).trace_id ?? "";
}
