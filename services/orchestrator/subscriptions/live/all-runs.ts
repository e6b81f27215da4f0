import type { Bus } from "#runtime/bus/bus.ts";
import { listen } from "#runtime/bus/link/listen.ts";
import { followSubject } from "#runtime/bus/streams/follow/follow.ts";
import { boundsOf } from "#runtime/bus/streams/read.ts";
import type { AllRuns, DeletedRun } from "../../runs/list/run-changes.ts";
import { runSubjects } from "../run-subjects.ts";
import { recordFrom } from "../streams/stream-run-log.ts";

/** The logs of all runs. What cannot be read of them is passed over. */
export function createAllRuns(bus: Bus): AllRuns {
  return {
    next: async (signal) => (await boundsOf(bus, runSubjects.everyLog, signal)).next,
    async *follow(fromSequence, signal) {
      for await (const message of followSubject(bus, runSubjects.everyLog, { fromSequence, signal })) {
        const stored = recordFrom(bus, message);
        if (stored !== undefined) yield stored;
      }
    },
    onDeleted(tell) {
      const subscription = listen(bus, runSubjects.deleted, (message) => tell(message.json<DeletedRun>()));
      return { [Symbol.dispose]: () => subscription.unsubscribe() };
    },
  };
}

/** Published once: who misses it learns of it when it lists the runs. */
export function createDeletedNews(bus: Bus): (deleted: DeletedRun) => void {
  return (deleted) => bus.connection.publish(runSubjects.deleted, JSON.stringify(deleted));
}
