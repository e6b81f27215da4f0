/**
 * Wake-ups in their work queue.
 *
 * As many are fetched as there are free hands, each of which begins at once: what waits in a process's memory runs into its
 * time. While a wake-up is worked on, the server is told so several times within the time after which it gives it to another
 * process.
 */

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Consumer, JetStreamApiError, type JsMsg } from "@nats-io/jetstream";
import { type SessionWake, SessionWakeSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { isPassing } from "#runtime/bus/jetstream-errors.ts";
import { retryOnBus } from "#runtime/bus/link.ts";
import { readRecord } from "#runtime/bus/record.ts";
import { messagesUntil } from "#runtime/bus/streams/messages-until.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { Wake, WakeQueue } from "../../sessions/wakes/wake.ts";
import { runSubjects } from "../run-subjects.ts";

const stream = "TOOLBUS_WAKES";
const consumerName = "orchestrator";
const nanosecondsPerMillisecond = 1_000_000;
const fetchMs = 5_000;

export interface StreamWakesOptions {
  /** After this long without a sign of life, a wake-up goes to another process. */
  readonly ackWaitMs: number;
  readonly heartbeatMs: number;
  /** How many wake-ups all processes together may have in hand or put back. */
  readonly maxInHand: number;
}

export async function openStreamWakes(bus: Bus, options: StreamWakesOptions): Promise<WakeQueue> {
  const consumer = await openConsumer(bus, options);
  const inHand = openHeartbeat(options.heartbeatMs);

  return {
    async send(wake) {
      const payload = toBinary(SessionWakeSchema, create(SessionWakeSchema, wake));
      const publish = () => bus.jetstream.publish(runSubjects.wake(wake.sessionId), payload, { timeout: 2_000 });
      await retryOnBus(bus.link, publish, { timeoutMs: 15_000, what: `waking session ${wake.sessionId}`, isPassing });
    },
    async *next(atMost, signal) {
      await bus.link.whenUp(signal);
      const messages = await unlessAborted(consumer.fetch({ max_messages: atMost, expires: fetchMs }), bus.link.down);
      using ending = openEnding(signal, bus.link.down);
      for await (const message of messagesUntil(messages, ending.signal)) {
        if (signal.aborted) continue; // it comes to another process in its time
        const wake = wakeFrom(bus, message);
        if (wake === undefined) message.term("nobody can read it");
        else yield wakeFromMessage(message, wake, inHand);
      }
    },
  };
}

/** One consumer for all processes; the settings of the process that opened it last hold. */
async function openConsumer(bus: Bus, { ackWaitMs, maxInHand }: StreamWakesOptions): Promise<Consumer> {
  const settings = { ack_wait: ackWaitMs * nanosecondsPerMillisecond, max_deliver: -1, max_ack_pending: maxInHand };
  const open = async () => {
    try {
      await bus.manager.consumers.add(stream, { durable_name: consumerName, ack_policy: "explicit", ...settings });
    } catch (error) {
      if (!(error instanceof JetStreamApiError && error.code === consumerExists)) throw error;
      await bus.manager.consumers.update(stream, consumerName, settings);
    }
    return bus.jetstream.consumers.get(stream, consumerName);
  };
  return retryOnBus(bus.link, open, { what: "opening the queue of wake-ups", isPassing });
}

/** The server's code for a consumer that stands with other settings. */
const consumerExists = 10148;

/** Tells the server of all wake-ups in hand at once, so that one write carries it. There is no timer while there are none. */
function openHeartbeat(intervalMs: number) {
  const messages = new Set<JsMsg>();
  let timer: NodeJS.Timeout | undefined;

  function beat(): void {
    for (const message of messages) message.working();
  }

  return {
    add(message: JsMsg) {
      messages.add(message);
      timer ??= setInterval(beat, intervalMs);
    },
    remove(message: JsMsg) {
      messages.delete(message);
      if (messages.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    },
  };
}

/** Undefined for one that cannot be read: it wakes nobody. */
export function wakeFrom(bus: Bus, { subject, seq: sequence, data }: JsMsg): SessionWake | undefined {
  return readRecord(bus, { subject, sequence }, () => {
    const wake = fromBinary(SessionWakeSchema, data);
    return wake.sessionId === "" ? undefined : wake;
  });
}

function wakeFromMessage(message: JsMsg, wake: SessionWake, inHand: ReturnType<typeof openHeartbeat>): Wake {
  inHand.add(message);
  return {
    message: wake,
    id: message.seq,
    ageMs: Date.now() - message.time.getTime(),
    done() {
      inHand.remove(message);
      message.ack();
    },
    later(delayMs) {
      inHand.remove(message);
      message.nak(delayMs);
    },
    leave() {
      inHand.remove(message);
    },
  };
}
