import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { Msg } from "@nats-io/transport-node";
import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";

type Take = (error: null, message: Msg) => void;

/** A bus that hands messages to its subscribers at once, as the connection does whether or not anybody reads them. */
export function openLiveBus(flush = async () => {}) {
  const subscribers = new Set<Take>();
  let subscribed = 0;
  const bus = {
    connection: {
      subscribe: (_subject: string, { callback }: { callback: Take }) => {
        subscribers.add(callback);
        subscribed += 1;
        return { unsubscribe: () => void subscribers.delete(callback) };
      },
      flush,
    },
    link: {
      onReturn: () => () => {},
      whenUp: async () => {},
      down: new AbortController().signal,
      storage: { patienceMs: Number.POSITIVE_INFINITY },
    },
  } as unknown as Bus;

  function give(response: MessageInitShape<typeof WatchRunResponseSchema>, position?: number): void {
    const data = toBinary(WatchRunResponseSchema, create(WatchRunResponseSchema, response));
    const headers = position === undefined ? undefined : { get: () => String(position) };
    for (const take of subscribers) take(null, { data, headers } as unknown as Msg);
  }

  return {
    bus,
    tell(n: number, text = "x", turn = 1): void {
      give({ update: { case: "delta", value: { turn, attempt: 1, index: n, delta: { case: "text", value: text } } } });
    },
    tellEvent: (value: RunEvent, position: number) => give({ update: { case: "event", value } }, position),
    standing: () => subscribers.size,
    subscribed: () => subscribed,
  };
}
