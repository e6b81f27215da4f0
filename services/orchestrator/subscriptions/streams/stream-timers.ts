/**
 * Times at which sessions are to be woken, kept by the broker: a scheduled message for each run that waits, which the broker
 * publishes when it is due, and any process makes a wake-up of it. No process holds anything meanwhile.
 *
 * What is due comes a little late (a few hundred milliseconds), and may come twice: a wake-up without events does no harm.
 */

import { create, toBinary } from "@bufbuild/protobuf";
import { SessionWakeSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { publishWork } from "#runtime/bus/streams/publish-work.ts";
import { openWorkQueue } from "#runtime/bus/work-queue/work-queue.ts";
import { openBackground } from "#runtime/lifecycle/background.ts";
import type { OperatorLog } from "#runtime/lifecycle/logger.ts";
import { repeatUntilAborted } from "#runtime/time/retry/retry.ts";
import type { Timers, WakeQueue } from "../../sessions/wakes/wake.ts";
import { runSubjects } from "../run-subjects.ts";
import { wakeFrom } from "./stream-wakes.ts";

const atOnce = 64;

export function createStreamTimers(bus: Bus): Timers {
  return {
    async set({ sessionId, runId }, atMs) {
      const payload = toBinary(SessionWakeSchema, create(SessionWakeSchema, { sessionId, runId }));
      const schedule = { specification: new Date(atMs), target: runSubjects.timerDue(sessionId) };
      const what = `setting the timer of run ${runId}`;
      await publishWork(bus, { stream: "TOOLBUS_TIMERS", subject: runSubjects.timer(runId), payload, schedule, what });
    },
  };
}

/** Makes wake-ups of what is due. Disposing leaves what is not done to others. */
export async function openDueTimers(
  bus: Bus,
  wakes: Pick<WakeQueue, "send">,
  logger: Pick<OperatorLog, "warn">,
): Promise<AsyncDisposable> {
  const queue = await openWorkQueue(bus, {
    ...{ stream: "TOOLBUS_TIMERS", name: "orchestrator", fetchMs: 30_000 },
    filterSubject: runSubjects.everyTimerDue,
    more: { max_deliver: -1 },
  });
  const onError = (error: unknown) => logger.warn({ err: error }, "timers that are due cannot be fetched");
  return openBackground((signal) => {
    const wakeDue = async (works: () => void) => {
      for (; !signal.aborted; works()) {
        for await (const work of queue.next(atOnce, signal)) {
          const due = wakeFrom(bus, work.message);
          if (due !== undefined) await wakes.send({ sessionId: due.sessionId, runId: due.runId, eventCount: 0 });
          work.done();
        }
      }
    };
    return repeatUntilAborted(wakeDue, { initialMs: 50, maxMs: 1_000, signal, onError });
  });
}
