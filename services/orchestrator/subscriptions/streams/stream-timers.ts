/**
 * Times at which sessions are to be woken, kept by the broker: a scheduled message for each run that waits, which the broker
 * publishes when it is due, and whoever has a free hand makes a wake-up of it. No process holds anything meanwhile.
 *
 * What is due comes a little late (a few hundred milliseconds), and may come twice: a wake-up without news does no harm.
 */

import { create, toBinary } from "@bufbuild/protobuf";
import type { Consumer } from "@nats-io/jetstream";
import { SessionWakeSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { isPassing } from "#runtime/bus/jetstream-errors.ts";
import { retryOnBus } from "#runtime/bus/link.ts";
import { messagesUntil } from "#runtime/bus/streams/messages-until.ts";
import { openBackground } from "#runtime/lifecycle/background.ts";
import type { OperatorLog } from "#runtime/lifecycle/logger.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { repeatUntilAborted } from "#runtime/time/retry/retry.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { Timers, WakeQueue } from "../../sessions/wakes/wake.ts";
import { runSubjects } from "../run-subjects.ts";
import { wakeFrom } from "./stream-wakes.ts";

const stream = "TOOLBUS_TIMERS";
const consumerName = "orchestrator";
const fetchMs = 30_000;
const atOnce = 64;

export function createStreamTimers(bus: Bus): Timers {
  return {
    async set({ sessionId, runId }, atMs) {
      const payload = toBinary(SessionWakeSchema, create(SessionWakeSchema, { sessionId, runId }));
      const schedule = { specification: new Date(atMs), target: runSubjects.timerDue(sessionId) };
      const publish = () => bus.jetstream.publish(runSubjects.timer(runId), payload, { schedule, timeout: 2_000 });
      await retryOnBus(bus.link, publish, { timeoutMs: 15_000, what: `setting the timer of run ${runId}`, isPassing });
    },
  };
}

/** Makes wake-ups of what is due. Disposing leaves what is not done to others. */
export async function openDueTimers(
  bus: Bus,
  wakes: Pick<WakeQueue, "send">,
  logger: Pick<OperatorLog, "warn">,
): Promise<AsyncDisposable> {
  const consumer = await openConsumer(bus);
  return openBackground((signal) => passOn(bus, consumer, { wakes, logger, signal }));
}

async function openConsumer(bus: Bus): Promise<Consumer> {
  const open = async () => {
    await bus.manager.consumers.add(stream, {
      durable_name: consumerName,
      ack_policy: "explicit",
      filter_subject: runSubjects.everyTimerDue,
      max_deliver: -1,
    });
    return bus.jetstream.consumers.get(stream, consumerName);
  };
  return retryOnBus(bus.link, open, { what: "opening the timers that are due", isPassing });
}

interface PassingOn {
  readonly wakes: Pick<WakeQueue, "send">;
  readonly logger: Pick<OperatorLog, "warn">;
  readonly signal: AbortSignal;
}

async function passOn(bus: Bus, consumer: Consumer, { wakes, logger, signal }: PassingOn): Promise<void> {
  const fetchOnce = async () => {
    await bus.link.whenUp(signal);
    using ending = openEnding(signal, bus.link.down);
    const fetching = consumer.fetch({ max_messages: atOnce, expires: fetchMs });
    const messages = await unlessAborted(fetching, ending.signal);
    for await (const message of messagesUntil(messages, ending.signal)) {
      const due = wakeFrom(bus, message);
      if (due !== undefined) await wakes.send({ sessionId: due.sessionId, runId: due.runId, eventCount: 0 });
      message.ack();
    }
  };
  const fetchAgain = async (works: () => void) => {
    for (; !signal.aborted; works()) await fetchOnce();
  };
  const onError = (error: unknown) => logger.warn({ err: error }, "timers that are due cannot be fetched");
  await repeatUntilAborted(fetchAgain, { initialMs: 50, maxMs: 1_000, signal, onError });
}
