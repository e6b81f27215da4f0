import type { Bus } from "#runtime/bus/bus.ts";
import { retryOnBus } from "#runtime/bus/link/link.ts";
import { lastOf } from "#runtime/bus/streams/append/append.ts";
import { readSubject } from "#runtime/bus/streams/read.ts";
import type { Retention } from "../../sessions/retention/retention.ts";
import { runSubjects } from "../run-subjects.ts";
import { entryFromStored } from "./stream-queues.ts";

export function createStreamRetention(bus: Bus): Retention {
  /** All messages of the subject, or those that stand before a sequence. */
  async function purge(filter: string, beforeSequence?: number): Promise<void> {
    const options = { filter, ...(beforeSequence !== undefined && { seq: beforeSequence }) };
    const remove = () => bus.manager.streams.purge("TOOLBUS_RUNS", options);
    await retryOnBus(bus.link, remove, { attemptMs: 5_000, what: `removing ${filter}` });
  }

  return {
    async *entriesBefore(ms) {
      for await (const message of readSubject(bus, runSubjects.everyQueue)) {
        if (message.time.getTime() >= ms) return;
        const entry = entryFromStored(bus, message);
        if (entry !== undefined) yield entry;
      }
    },
    async lastWrittenMs(runId) {
      const last = await lastOf(bus, runSubjects.log(runId));
      return last?.time.getTime();
    },
    removeLog: (runId) => purge(runSubjects.log(runId)),
    async removeQueue(sessionId, upToPosition) {
      await purge(runSubjects.everyKey(sessionId), upToPosition + 1);
      await purge(runSubjects.queue(sessionId), upToPosition + 1);
    },
  };
}
