import { fromBinary } from "@bufbuild/protobuf";
import type { ConsumerMessages, JsMsg } from "@nats-io/jetstream";
import { type SpaceEvent, SpaceEventSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { isPassing } from "#runtime/bus/jetstream-errors.ts";
import { retryOnBus } from "#runtime/bus/link.ts";
import { messagesUntil } from "#runtime/bus/streams/messages-until.ts";
import { Failure, messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import { openBackground } from "#runtime/lifecycle/background.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { repeatUntilAborted } from "#runtime/time/retry/retry.ts";
import { eventAt } from "../space/space-state.ts";

const stream = "TOOLBUS_SPACES";
const durable = "spaces_to_inboxes";
const retryMs = 1_000;
const nanosecondsPerMillisecond = 1_000_000;

export interface DeliveryOptions {
  /** Done once for each event at least; after a crash once more, by any instance. */
  deliver: (event: SpaceEvent) => Promise<void>;
  logger: { warn(details: object, message: string): void };
}

/**
 * Hands each event of each space to one of the instances. The place in the log is kept by the server, so that a message
 * reaches the inboxes even if the instance that stored it died right after.
 */
export async function openDeliveries(bus: Bus, { deliver, logger }: DeliveryOptions): Promise<AsyncDisposable> {
  await retryOnBus(bus.link, () => ensureConsumer(bus), { what: `creating consumer ${durable}`, isPassing });

  const handle = async (message: JsMsg) => {
    try {
      await deliver(eventFromMessage(message));
      message.ack();
    } catch (error) {
      const isLasting = error instanceof Failure && error.code === "invalid_argument"; // would fail again and again
      logger.warn(
        { err: error, subject: message.subject, sequence: message.seq, isLasting },
        messageFromUnknown(error),
      );
      if (isLasting) message.term(messageFromUnknown(error));
      else message.nak(retryMs);
    }
  };

  const onError = (error: unknown) =>
    logger.warn({ err: error }, `messages do not reach inboxes: ${messageFromUnknown(error)}`);
  return openBackground((signal) => {
    const follow = async (works: () => void) => {
      for await (const message of consume(bus, signal)) {
        await handle(message);
        works();
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

async function ensureConsumer(bus: Bus) {
  await bus.manager.consumers.add(stream, {
    durable_name: durable,
    filter_subject: "toolbus.space.*",
    ack_policy: "explicit",
    ack_wait: 10_000 * nanosecondsPerMillisecond,
    deliver_policy: "all",
    max_ack_pending: 100,
  });
}

/** One at a time: what is fetched ahead waits for its turn while another instance could take it. */
async function* consume(bus: Bus, signal: AbortSignal): AsyncGenerator<JsMsg> {
  const open = async () => {
    await ensureConsumer(bus); // a server that lost its store comes back without it
    const consumer = await bus.jetstream.consumers.get(stream, durable);
    return consumer.consume({ max_messages: 1, expires: 10_000, idle_heartbeat: 1_000 });
  };
  const messages: ConsumerMessages = await retryOnBus(bus.link, open, {
    signal,
    what: `consuming ${durable}`,
    isPassing,
  });
  using ending = openEnding(signal, bus.link.down);
  yield* messagesUntil(messages, ending.signal);
}
