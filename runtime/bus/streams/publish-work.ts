import type { JetStreamPublishOptions } from "@nats-io/jetstream";
import type { Bus } from "../bus.ts";
import type { StreamName } from "../declarations/declarations.ts";
import { failureFromRefusal } from "../link/jetstream-errors.ts";
import { retryOnBus } from "../link/link.ts";

export interface WorkMessage {
  readonly stream: StreamName;
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly schedule?: JetStreamPublishOptions["schedule"];
  /** What is done, as it should stand in the error: "waking session 7". */
  readonly what: string;
}

const timeoutMs = 15_000;

/** Puts a message into a stream that does no harm if it is there twice. A store that is full is told as such. */
export async function publishWork(bus: Bus, { stream, subject, payload, schedule, what }: WorkMessage): Promise<void> {
  const publish = () => bus.jetstream.publish(subject, payload, { ...(schedule && { schedule }), timeout: 2_000 });
  try {
    await retryOnBus(bus.link, publish, { timeoutMs, what });
  } catch (error) {
    throw failureFromRefusal(error, stream) ?? error;
  }
}
