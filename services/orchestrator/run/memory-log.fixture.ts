import type { RunEvent } from "#gen/toolbus/run/v1/run_pb.ts";
import type { RunLog, StoredEvent } from "./journal.ts";

export interface MemoryRunLog extends RunLog {
  events(runId: string): RunEvent[];
}

/** A log with the fence of the real one, for tests of what stands above it. */
export function createMemoryRunLog(): MemoryRunLog {
  const storedByRunId = new Map<string, StoredEvent[]>();
  let lastPosition = 0;
  const of = (runId: string) => storedByRunId.get(runId) ?? [];
  return {
    read: async (runId, afterPosition) => of(runId).filter(({ position }) => position > afterPosition),
    append: async (event, position) => {
      const stored = of(event.runId);
      if ((stored.at(-1)?.position ?? 0) !== position) return { kind: "conflict" };
      lastPosition += 1;
      storedByRunId.set(event.runId, [...stored, { event, position: lastPosition }]);
      return { kind: "appended", position: lastPosition };
    },
    events: (runId) => of(runId).map(({ event }) => event),
  };
}
