import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { encoded } from "#runtime/rpc/nats/frame/encoded.ts";
import { openTestBus } from "../../../../test/harness/bus.ts";
import { publishUpdate } from "../streams/stream-run-log.ts";
import { createLiveUpdates } from "./live-updates.ts";

test("LOOP-10 a watcher whose subscription meets the broker's death follows its run when the broker is back", async () => {
  await using bus = await openTestBus();
  const live = createLiveUpdates(bus);
  process.kill(bus.server.pid, "SIGSTOP"); // what is asked now gets no answer
  const subscribing = live.subscribe("run_cut", new AbortController().signal);
  await bus.server.kill();
  await bus.server.restart();
  using subscription = await subscribing;
  const update = create(WatchRunResponseSchema, { update: { case: "delta", value: { turn: 7 } } });
  expect(await subscription.next(), "something may have been lost").toBeUndefined();
  publishUpdate(bus, "run_cut", update);
  const news = await subscription.next();
  expect(news).toMatchObject({ update: { update: { case: "delta", value: { turn: 7 } } } });
  const bytes = encoded(WatchRunResponseSchema, news?.update ?? update);
  expect(bytes.buffer.byteLength, "holds nothing else that the connection read").toBe(bytes.byteLength);
});
