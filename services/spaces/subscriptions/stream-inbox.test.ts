import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type InboxEvent, InboxEventSchema } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { evictValues } from "#runtime/bus/buckets/bucket-eviction.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { openTestBus } from "../../../test/harness/bus.ts";
import { createInbox } from "../inbox/inbox.ts";
import { createStreamInbox, seenMarks } from "./stream-inbox.ts";

const hourMs = 3_600_000;
const owner = { sessionId: "s", agent: "a" };

function event(eventId: string): InboxEvent {
  return create(InboxEventSchema, { ...owner, eventId, event: { case: "plan", value: { key: "k", text: "t" } } });
}

test("TOOL-9 marks of events that were seen make room for later ones; one that waits keeps its mark", async () => {
  await using bus = await openTestBus();
  const { config } = await bus.manager.streams.info("KV_toolbus_inbox_seen");
  await bus.manager.streams.update("KV_toolbus_inbox_seen", { ...config, max_bytes: 32 * 1_024 });
  const inbox = createInbox({ store: createStreamInbox(bus), clock: systemClock, wake: async () => {} });
  await inbox.deliver(event("tr:waits"));
  const fill = async () => {
    for (let n = 0; ; n += 1) {
      await inbox.deliver(event(`tr:${n}`));
      await inbox.acknowledge(owner, [`tr:${n}`]);
    }
  };
  await expect(fill()).rejects.toMatchObject({ reason: "STORE_FULL" });

  const roomAfter = (ms: number) => {
    const clock = { ...systemClock, now: () => Date.now() + ms };
    return evictValues(bus, seenMarks(clock), new AbortController().signal);
  };
  expect(await roomAfter(0), "those that were seen within the hour").toBe(0);
  expect(await roomAfter(2 * hourMs)).toBeGreaterThan(20);
  expect(await inbox.deliver(event("tr:next"))).toEqual({ duplicate: false });
  expect(await inbox.deliver(event("tr:waits"))).toEqual({ duplicate: true });
  expect((await inbox.list(owner)).map(({ eventId }) => eventId)).toContain("tr:waits");
});

test("TOOL-9 events that several processes acknowledge at once are gone, and none of them fails", async () => {
  await using bus = await openTestBus();
  const open = () => createInbox({ store: createStreamInbox(bus), clock: systemClock, wake: async () => {} });
  const [one, other] = [open(), open()];
  const ids = Array.from({ length: 30 }, (_, index) => `tr:${index}`);
  for (const id of ids) await one.deliver(event(id));
  await Promise.all([one, other, one, other].map((by) => by.acknowledge(owner, ids)));
  expect(await one.list(owner)).toEqual([]);
});
