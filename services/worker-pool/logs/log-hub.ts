import { LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createEventQueue } from "../event-queue.ts";
import type { LogLine } from "./log-line.ts";

/** Where the logs of all workers pass; each watcher reads at its own pace and is told what it missed. */
export interface LogHub {
  write(line: LogLine): void;
  /** All lines from here on, of one source or of all (empty), until the signal aborts. */
  watch(source: string, signal: AbortSignal): AsyncIterable<LogLine>;
}

const WATCHER_LIMIT = 2_000;

export function createLogHub(): LogHub {
  const watchers = new Set<{ source: string; push: (line: LogLine) => void }>();

  return {
    write(line) {
      for (const { source, push } of watchers) if (source === "" || source === line.source) push(line);
    },
    async *watch(source, signal) {
      const leftOut = (count: number) => lineAboutLeftOut(source, count);
      const queue = createEventQueue<LogLine>({ limit: WATCHER_LIMIT, leftOut });
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

function lineAboutLeftOut(source: string, count: number): LogLine {
  const message = `${count} lines were left out: they came faster than they were read`;
  const labels = { source, function: "", callId: "", traceId: "" };
  return { timeMs: Date.now(), ...labels, level: LogLevel.WARN, message, fieldsJson: "" };
}
