import { type ConsumerConfig, JetStreamApiError } from "@nats-io/jetstream";
import type { Bus } from "../bus.ts";
import { retryOnBus } from "../link/link.ts";

export interface WorkConsumer {
  readonly stream: string;
  /** The same in all processes, which share the work. */
  readonly name: string;
  readonly filterSubject?: string | undefined;
  /** After this long without an acknowledgement or a sign of life, a message goes to another process. */
  readonly ackWaitMs?: number | undefined;
  /** Beyond `ackWaitMs` and the filter, which the first process decides for all. */
  readonly more?: Partial<ConsumerConfig>;
  readonly signal?: AbortSignal | undefined;
}

export const nanosFromMs = (ms: number): number => ms * 1_000_000;

/** The server's code for a consumer that stands with other settings. */
const consumerExists = 10148;

/** Makes sure that the durable consumer is there; the settings of the process that did so last hold. */
export async function ensureWorkConsumer(bus: Bus, consumer: WorkConsumer): Promise<void> {
  const { stream, name, filterSubject, ackWaitMs, more, signal } = consumer;
  const settings: Partial<ConsumerConfig> = {
    ack_policy: "explicit",
    ...(filterSubject !== undefined && { filter_subject: filterSubject }),
    ...(ackWaitMs !== undefined && { ack_wait: nanosFromMs(ackWaitMs) }),
    ...more,
  };
  const add = async () => {
    try {
      await bus.manager.consumers.add(stream, { durable_name: name, ...settings });
    } catch (error) {
      if (!(error instanceof JetStreamApiError && error.code === consumerExists)) throw error;
      const { ack_policy: _, deliver_policy: __, ...changeable } = settings;
      await bus.manager.consumers.update(stream, name, changeable);
    }
  };
  await retryOnBus(bus.link, add, { what: `creating consumer ${name}`, signal });
}
