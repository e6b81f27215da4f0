import { createEventQueue } from "#runtime/collections/event-queue.ts";
import type { LogLine } from "./log-line.ts";

/** Where the logs of all workers pass; each watcher reads at its own pace and is told what it missed. */
export interface LogHub {
  write(line: LogLine): void;
  /** The lines from here on that are shown to the watcher, until the signal aborts. */
  watch(isShown: (line: LogLine) => boolean, signal: AbortSignal): AsyncIterable<LogEvent>;
}

/** A line, or how many were left out before the next one: they came faster than they were read. */
export type LogEvent = { case: "line"; value: LogLine } | { case: "dropped"; value: number };

const WATCHER_LIMIT = 2_000;

export function createLogHub(): LogHub {
  const watchers = new Set<{ isShown: (line: LogLine) => boolean; push: (event: LogEvent) => void }>();

  return {
    write(line) {
      for (const { isShown, push } of watchers) if (isShown(line)) push({ case: "line", value: line });
    },
    async *watch(isShown, signal) {
      const leftOut = (count: number): LogEvent => ({ case: "dropped", value: count });
      const queue = createEventQueue<LogEvent>({ limit: WATCHER_LIMIT, leftOut });
      const watcher = { isShown, push: queue.push };
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
