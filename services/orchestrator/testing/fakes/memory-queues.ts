import type { QueueEntry, SessionQueues } from "../../sessions/queue.ts";

/** Queues in memory, with the fence of the real ones. */
export function createMemoryQueues(): SessionQueues {
  const entriesBySession = new Map<string, QueueEntry[]>();
  let lastPosition = 1_000_000;
  const of = (sessionId: string) => entriesBySession.get(sessionId) ?? [];
  return {
    last: async (sessionId) => of(sessionId).at(-1),
    before: async ({ queued }) =>
      of(queued.sessionId).find(({ position }) => position === Number(queued.previousEntrySequence)),
    async append(queued) {
      const entries = of(queued.sessionId);
      if ((entries.at(-1)?.position ?? 0) !== Number(queued.previousEntrySequence)) return { kind: "conflict" };
      lastPosition += 1;
      entriesBySession.set(queued.sessionId, [...entries, { queued, position: lastPosition }]);
      return { kind: "appended", position: lastPosition };
    },
  };
}
