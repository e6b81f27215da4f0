import { fromBinary } from "@bufbuild/protobuf";
import type { JsMsg } from "@nats-io/jetstream";
import { type SessionWake, SessionWakeSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { readRecord } from "#runtime/bus/streams/record.ts";
import { openWorkQueue, type Work } from "#runtime/bus/work-queue/work-queue.ts";
import { wakeSession } from "../../../clients.ts";
import { againMs, type Wake, type WakeQueue } from "../../sessions/wakes/wake.ts";

export interface StreamWakesOptions {
  /** After this long without a sign of life, a wake-up goes to another process. */
  readonly ackWaitMs: number;
  readonly heartbeatMs: number;
  /** How many wake-ups all processes together may have in hand or put back. */
  readonly maxInHand: number;
}

/** Wake-ups in their work queue. */
export async function openStreamWakes(bus: Bus, options: StreamWakesOptions): Promise<WakeQueue> {
  const { ackWaitMs, heartbeatMs, maxInHand } = options;
  const queue = await openWorkQueue(bus, {
    ...{ stream: "TOOLBUS_WAKES", name: "orchestrator", ackWaitMs, heartbeatMs, fetchMs: 5_000 },
    more: { max_deliver: -1, max_ack_pending: maxInHand },
  });

  return {
    send: (wake) => wakeSession(bus, wake),
    async *next(atMost, signal) {
      for await (const work of queue.next(atMost, signal)) {
        const wake = wakeFrom(bus, work.message);
        if (wake === undefined) work.refuse("nobody can read it");
        else yield wakeFromWork(work, wake);
      }
    },
  };
}

/** Undefined for one that cannot be read: it wakes no session. */
export function wakeFrom(bus: Bus, { subject, seq: sequence, data }: JsMsg): SessionWake | undefined {
  return readRecord(bus, { subject, sequence }, () => {
    const wake = fromBinary(SessionWakeSchema, data);
    return wake.sessionId === "" ? undefined : wake;
  });
}

/** A clock that is ahead of the broker's makes no wake-up old: its age is at most what its deliveries took. */
function wakeFromWork({ message: { seq, time, info }, done, later, leave }: Work, message: SessionWake): Wake {
  const { deliveryCount } = info;
  const ageMs = Math.min(Date.now() - time.getTime(), deliveryCount * againMs);
  return { message, id: seq, ageMs, deliveryCount, done, later, leave };
}
