import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { RefusedFile } from "#gen/toolbus/tool/v1/refused_file_pb.ts";
import type { Worker } from "#gen/toolbus/worker/v1/worker_pb.ts";
import {
  DroppedLinesSchema,
  type WorkerLogLine,
  WorkerLogLineSchema,
} from "#gen/toolbus/worker/v1/worker_service_pb.ts";
import type { LogEvent, LogHub } from "../../logs/log-hub.ts";
import type { LogLine } from "../../logs/log-line.ts";
import type { LogUpdate, Part } from "./fleet.ts";

export interface OwnParts {
  workers: () => Worker[];
  refusedFiles: () => RefusedFile[];
  stop: Part["stop"];
  logs: LogHub;
}

/** The workers of this instance. */
export function createOwnPart({ workers, refusedFiles, stop, logs }: OwnParts): Part {
  return {
    list: async () => ({ workers: workers(), refusedFiles: refusedFiles() }),
    stop,
    async *watchLogs({ source, principal }, signal) {
      const isShown = (line: LogLine) =>
        (source === "" || source === line.source) && (principal === "" || principal === line.principal);
      for await (const event of logs.watch(isShown, signal)) yield updateFromEvent(event);
    },
  };
}

function updateFromEvent(event: LogEvent): LogUpdate {
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
