import { create, toBinary } from "@bufbuild/protobuf";
import { StoredRunEventSchema } from "#gen/toolbus/internal/run/v1/run_log_pb.ts";
import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import type { RunLog } from "../../log/journal.ts";
import type { LogRecord, StoredEvent } from "../../log/state/log-record.ts";
import { refuseTooLargeEvent } from "../../log/too-large.ts";

export interface MemoryRunLog extends RunLog {
  events(runId: string): RunEvent[];
  records(runId: string): StoredEvent[];
  /** Removes a run's log, as an operator may. */
  purge(runId: string): void;
}

/** A log with the fence of the real one, for tests of what stands above it. */
export function createMemoryRunLog({ maxEventBytes = 2 ** 20 } = {}): MemoryRunLog {
  const storedByRunId = new Map<string, StoredEvent[]>();
  let lastPosition = 0;
  const of = (runId: string) => storedByRunId.get(runId) ?? [];
  return {
    check: (record) => refuseTooLargeEvent(record.event, sizeOf(record), maxEventBytes),
    maxEventBytes: () => maxEventBytes,
    read: async (runId, afterPosition) => {
      const records = of(runId).filter(({ position }) => position > afterPosition);
      return { records, position: records.at(-1)?.position ?? afterPosition };
    },
    first: async (runId, afterPosition = 0) => of(runId).find(({ position }) => position > afterPosition),
    last: async (runId) => of(runId).at(-1),
    append: async (record, position) => {
      const { runId } = record.event;
      const stored = of(runId);
      if ((stored.at(-1)?.position ?? 0) !== position) return { kind: "conflict" };
      lastPosition += 1;
      storedByRunId.set(runId, [...stored, { ...record, position: lastPosition }]);
      return { kind: "appended", position: lastPosition };
    },
    purge: (runId) => storedByRunId.delete(runId),
    events: (runId) => of(runId).map(({ event }) => event),
    records: (runId) => [...of(runId)],
  };
}

function sizeOf(record: LogRecord): number {
  return toBinary(StoredRunEventSchema, create(StoredRunEventSchema, record)).length;
}

/** Events as a log keeps them: those of a claim are written under the number that it has, the first one under 1. */
export function recordsOf(events: readonly RunEvent[]): LogRecord[] {
  let epoch = 0;
  return events.map((event) => {
    if (event.event.case === "claimed") epoch += 1;
    return { event, epoch, instance: event.event.case === "claimed" ? `i${epoch}` : "" };
  });
}
