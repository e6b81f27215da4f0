import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  DroppedLinesSchema,
  type WatchWorkerLogsResponse,
  WorkerLogLineSchema,
} from "#gen/toolbus/worker/v1/worker_service_pb.ts";
import { createEventQueue, type EventQueue } from "#runtime/collections/feeds/event-queue.ts";
import type { LogLine } from "./log-line.ts";

/** A line, or how many were left out before the next one: they came faster than they were read. */
export type LogUpdate = WatchWorkerLogsResponse["update"];

/** Lines of the source, and of calls of the principal; empty for all. */
export interface LogFilter {
  source: string;
  principal: string;
}

/** Where the logs of all workers pass; each watcher reads at its own pace and is told what it missed. */
export type LogHub = ReturnType<typeof createLogHub>;

const WATCHER_LIMIT = 2_000;

/** What waits for one watcher; ends when the signal aborts. */
export function openLogQueue(signal: AbortSignal): EventQueue<LogUpdate> {
  const leftOut = (count: number): LogUpdate => ({
    case: "dropped",
    value: create(DroppedLinesSchema, { count: BigInt(count) }),
  });
  const queue = createEventQueue<LogUpdate>({ limit: WATCHER_LIMIT, leftOut });
  signal.addEventListener("abort", () => queue.end(), { once: true });
  if (signal.aborted) queue.end();
  return queue;
}

export function createLogHub() {
  const watchers = new Set<{ filter: LogFilter; push: (update: LogUpdate) => void }>();

  return {
    write({ timeMs, principal, level, message, fieldsJson, ...labels }: LogLine): void {
      const isShownTo = ({ filter }: { filter: LogFilter }) =>
        ["", labels.source].includes(filter.source) && ["", principal].includes(filter.principal);
      const shownTo = [...watchers].filter(isShownTo);
      if (shownTo.length === 0) return;
      const log = { level, message, fieldsJson };
      const value = create(WorkerLogLineSchema, { createTime: timestampFromMs(timeMs), ...labels, log });
      for (const { push } of shownTo) push({ case: "line", value });
    },
    /** The lines from here on, until the signal aborts. */
    async *watch(filter: LogFilter, signal: AbortSignal): AsyncGenerator<LogUpdate> {
      const queue = openLogQueue(signal);
      const watcher = { filter, push: queue.push };
      watchers.add(watcher);
      try {
        yield* queue;
      } finally {
        watchers.delete(watcher);
      }
    },
  };
}
