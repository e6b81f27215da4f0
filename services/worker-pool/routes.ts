import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import {
  type GetProvidedToolsResponse,
  ToolProviderService,
  WatchProvidedToolsResponseSchema,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { RefusedFile } from "#gen/toolbus/tool/v1/refused_file_pb.ts";
import type { Source } from "#gen/toolbus/tool/v1/source_pb.ts";
import type { Worker as WorkerMessage } from "#gen/toolbus/worker/v1/worker_pb.ts";
import {
  DroppedLinesSchema,
  type WatchWorkerLogsResponse,
  type WorkerLogLine,
  WorkerLogLineSchema,
  WorkerService,
} from "#gen/toolbus/worker/v1/worker_service_pb.ts";
import { withEtag } from "#runtime/rpc/etag.ts";
import { callerOf, seesAll } from "#runtime/rpc/identity.ts";
import { pageOf, placeOfNumber } from "#runtime/rpc/paging/page.ts";
import { currentTrace, logFieldsFromTrace } from "#runtime/telemetry/trace-context.ts";
import { byOwnClock } from "#runtime/time/duration.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { LogEvent, LogHub } from "./logs/log-hub.ts";
import type { LogLine } from "./logs/log-line.ts";
import { watchOffers } from "./provider/offer-changes.ts";
import type { ToolCalls } from "./provider/tool-calls.ts";

export interface WorkerPoolRoutes {
  offer: (sources: readonly Source[]) => Promise<GetProvidedToolsResponse>;
  onChange: (listener: () => void) => () => void;
  calls: ToolCalls;
  workers: () => WorkerMessage[];
  refusedFiles: () => RefusedFile[];
  stop: (workerId: string, force: boolean) => Promise<void>;
  logs: LogHub;
  /** Aborts when the service begins to stop: watching would otherwise hold it up. */
  stopping: AbortSignal;
}

export function createRoutes({
  offer,
  onChange,
  calls,
  workers,
  refusedFiles,
  stop,
  logs,
  stopping,
}: WorkerPoolRoutes) {
  return (router: ConnectRouter): void => {
    router.service(ToolProviderService, {
      getProvidedTools: ({ sources }) => offer(sources),
      async *watchProvidedTools({ sources }, { signal }) {
        using ending = openEnding(signal, stopping);
        const offers = watchOffers(() => offer(sources), onChange, ending.signal);
        for await (const response of offers)
          yield withEtag(WatchProvidedToolsResponseSchema, { tools: response.tools, sources: response.sources });
      },
      executeTool: (request, { signal }) => calls.run(byOwnClock(request), { traceId: currentTraceId(), signal }),
      releaseScope: () => ({}), // a worker belongs to its file: what a scope needs comes with each request
    });
    router.service(WorkerService, {
      listWorkers(request, context) {
        const isWhole = seesAll(callerOf(context));
        const elements = isWhole ? workers() : workers().map((worker) => ({ ...worker, reason: "" })); // it cites what was written to stderr
        const { items, nextPageToken } = pageOf(["workers"], { elements, placeOf: placeOfWorker }, request);
        return {
          workers: items,
          refusedFiles: isWhole && request.pageToken === "" ? refusedFiles() : [],
          nextPageToken,
        };
      },
      async stopWorker({ workerId, force }) {
        await stop(workerId, force);
        return {};
      },
      async *watchWorkerLogs({ source }, context) {
        using ending = openEnding(context.signal, stopping);
        const caller = callerOf(context);
        const isShown = (line: LogLine) =>
          (source === "" || source === line.source) && (seesAll(caller) || line.principal === caller.principal);
        for await (const event of logs.watch(isShown, ending.signal)) yield { update: updateFromEvent(event) };
      },
    });
  };
}

function placeOfWorker({ source, file, processId }: WorkerMessage): string {
  return [source, file, placeOfNumber(BigInt(processId))].join("\0");
}

function currentTraceId(): string {
  return logFieldsFromTrace(currentTrace()).trace_id ?? "";
}

function updateFromEvent(event: LogEvent): WatchWorkerLogsResponse["update"] {
  if (event.case === "line") return { case: "line", value: messageFromLine(event.value) };
  return { case: "dropped", value: create(DroppedLinesSchema, { count: BigInt(event.value) }) };
}

function messageFromLine(line: LogLine): WorkerLogLine {
  const { timeMs, source, callId, traceId, level, message, fieldsJson } = line;
  return create(WorkerLogLineSchema, {
    createTime: timestampFromMs(timeMs),
    source,
    function: line.function,
    callId,
    traceId,
    log: { level, message, fieldsJson },
  });
}
