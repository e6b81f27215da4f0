import { toBinary } from "@bufbuild/protobuf";
import { type RunEvent, RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import type { RunLog, StoredEvent } from "./journal.ts";
import { refuseTooLargeEvent } from "./too-large.ts";

export interface MemoryRunLog extends RunLog {
  events(runId: string): RunEvent[];
  /** Removes a run's log, as an operator may. */
  purge(runId: string): void;
}

/** A log with the fence of the real one, for tests of what stands above it. */
export function createMemoryRunLog({ maxEventBytes = 2 ** 20 } = {}): MemoryRunLog {
  const storedByRunId = new Map<string, StoredEvent[]>();
  let lastPosition = 0;
  const of = (runId: string) => storedByRunId.get(runId) ?? [];
  return {
    check: (event) => refuseTooLargeEvent(event, toBinary(RunEventSchema, event).length, maxEventBytes),
    maxEventBytes: () => maxEventBytes,
    read: async (runId, afterPosition) => of(runId).filter(({ position }) => position > afterPosition),
    first: async (runId) => of(runId)[0],
    last: async (runId) => of(runId).at(-1),
    append: async (event, position) => {
      const stored = of(event.runId);
      if ((stored.at(-1)?.position ?? 0) !== position) return { kind: "conflict" };
      lastPosition += 1;
      storedByRunId.set(event.runId, [...stored, { event, position: lastPosition }]);
      return { kind: "appended", position: lastPosition };
    },
    purge: (runId) => storedByRunId.delete(runId),
    events: (runId) => of(runId).map(({ event }) => event),
  };
}
