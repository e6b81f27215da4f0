import { create, toBinary } from "@bufbuild/protobuf";
import type { Msg } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { WatchRunResponseSchema } from "#gen/toolbus/orchestrator/v1/run_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { createLiveUpdates } from "./live-updates.ts";

/** A bus that hands messages to its only subscriber at once, as the connection does whether or not anybody reads them. */
function openBus() {
  let take: (error: null, message: Msg) => void = () => {};
  const bus = {
    connection: {
      subscribe: (_subject: string, { callback }: { callback: typeof take }) => {
        take = callback;
        return { unsubscribe: () => {} };
      },
      flush: async () => {},
    },
    link: { onReturn: () => () => {}, whenUp: async () => {}, down: new AbortController().signal },
  } as unknown as Bus;
  const tell = (n: number) => {
    const update = { case: "delta", value: { turn: 1, attempt: 1, n, delta: { case: "text", value: "x" } } } as const;
    const data = toBinary(WatchRunResponseSchema, create(WatchRunResponseSchema, { update }));
    take(null, { data, headers: undefined } as unknown as Msg);
  };
  return { bus, tell };
}

test("LOOP-10 a watcher that falls behind keeps nobody waiting and holds little: it is told that it missed something, and goes on", async () => {
  const { bus, tell } = openBus();
  await using subscription = await createLiveUpdates(bus).subscribe("r", new AbortController().signal);
  for (let n = 0; n < 10_000; n += 1) tell(n); // nobody reads: each is taken at once all the same
  expect(await subscription.next()).toBeUndefined();
  let held = 0;
  tell(10_000);
  for (let last = -1; last !== 10_000; held += 1) {
    const update = (await subscription.next())?.update.update;
    expect(update?.case).toBe("delta");
    if (update?.case === "delta") last = update.value.n;
  }
  expect(held).toBeLessThan(3_000);
});
