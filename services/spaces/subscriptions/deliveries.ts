import { fromBinary } from "@bufbuild/protobuf";
import type { JsMsg } from "@nats-io/jetstream";
import { type SpaceEvent, SpaceEventSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { openWorkQueue, type Work } from "#runtime/bus/work-queue/work-queue.ts";
import { Failure, messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import { openBackground } from "#runtime/lifecycle/background.ts";
import { repeatUntilAborted } from "#runtime/time/retry/retry.ts";
import { eventAt } from "../space/space-state.ts";

const retryMs = 1_000;

export interface DeliveryOptions {
  /** Done once for each event at least; after a crash once more, by any instance. */
  deliver: (event: SpaceEvent) => Promise<void>;
  logger: { warn(details: object, message: string): void };
}

/**
 * Hands each event of each space to one of the instances. The place in the log is kept by the server, so that a message
 * reaches the inboxes even if the instance that stored it died right after. One at a time: what is fetched ahead would wait for
 * its turn while another instance could take it.
 */
export async function openDeliveries(bus: Bus, { deliver, logger }: DeliveryOptions): Promise<AsyncDisposable> {
  const queue = await openWorkQueue(bus, {
    ...{ stream: "TOOLBUS_SPACES", name: "spaces_to_inboxes", ackWaitMs: 10_000, fetchMs: 10_000 },
    filterSubject: "toolbus.space.*",
    more: { deliver_policy: "all", max_ack_pending: 100 },
  });

  const handle = async ({ message, done, later, refuse: refuseWork }: Work) => {
    try {
      await deliver(eventFromMessage(message));
      done();
    } catch (error) {
      const isLasting = error instanceof Failure && error.code === "invalid_argument"; // would fail again and again
      logger.warn(
        { err: error, subject: message.subject, sequence: message.seq, isLasting },
        messageFromUnknown(error),
      );
      if (isLasting) refuseWork(messageFromUnknown(error));
      else later(retryMs);
    }
  };
  const onError = (error: unknown) =>
    logger.warn({ err: error }, `messages do not reach inboxes: ${messageFromUnknown(error)}`);
  return openBackground((signal) => {
    const follow = async (works: () => void) => {
      for (; !signal.aborted; works()) {
        for await (const work of queue.next(1, signal)) await handle(work);
      }
    };
    return repeatUntilAborted(follow, { initialMs: 20, maxMs: 1_000, signal, onError });
  });
}

function eventFromMessage(message: JsMsg): SpaceEvent {
  try {
    return eventAt(fromBinary(SpaceEventSchema, message.data), BigInt(message.seq));
  } catch (cause) {
    return refuse("invalid_argument", `what stands in ${message.subject} is no event of a space`, {
      reason: "RECORD_LOST",
      cause,
    });
  }
}
