import { createEventQueue } from "../calls/event-queue.ts";
import type { LogLine } from "./log-line.ts";

/** Where the logs of all workers pass; each watcher reads at its own pace and is told what it missed. */
export interface LogHub {
  write(line: LogLine): void;
  /** All lines from here on, of one source or of all (empty), until the signal aborts. */
  watch(source: string, signal: AbortSignal): AsyncIterable<LogEvent>;
}

/** A line, or how many were left out before the next one: they came faster than they were read. */
export type LogEvent = { case: "line"; value: LogLine } | { case: "dropped"; value: number };

const WATCHER_LIMIT = 2_000;

export function createLogHub(): LogHub {
  const watchers = new Set<{ source: string; push: (event: LogEvent) => void }>();

  return {
    write(line) {
      for (const { source, push } of watchers)
        if (source === "" || source === line.source) push({ case: "line", value: line });
    },
    async *watch(source, signal) {
      const leftOut = (count: number): LogEvent => ({ case: "dropped", value: count });
      const queue = createEventQueue<LogEvent>({ limit: WATCHER_LIMIT, leftOut });
      const watcher = { source, push: queue.push };
      const onAbort = () => queue.end();
      watchers.add(watcher);
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) queue.end();
      try {
        yield* queue;
      } finally {
        watchers.delete(watcher);
        signal.removeEventListener("abort", onAbort);
      }
    },
  };
}
