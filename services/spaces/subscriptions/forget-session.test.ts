import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { InboxEventSchema } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { MemoryEntrySchema, MemoryKind } from "#gen/toolbus/space/v1/memory_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { openTestBus } from "../../../test/harness/bus.ts";
import { createInbox } from "../inbox/inbox.ts";
import { createMemory } from "../memory/memory.ts";
import { createMembership } from "../space/membership.ts";
import { createStores } from "../subscriptions.ts";
import { createForgetSession } from "./forget-session.ts";

test("TOOL-12 a session that is forgotten leaves nothing to one of the same id, and others keep theirs", async () => {
  await using bus = await openTestBus();
  const stores = createStores(bus);
  const inbox = createInbox({ store: stores.inbox, clock: systemClock, wake: async () => {} });
  const memory = createMemory(stores.memory);
  const membership = createMembership({ ...stores, clock: systemClock });
  const forget = createForgetSession(bus, membership);
  await membership.createSpace({ id: "hall", title: "", principal: "alice" });
  const [goes, stays] = ["goes", "stays"].map((sessionId) => ({ sessionId, agent: "a" })) as [Owner, Owner];
  for (const owner of [goes, stays]) {
    const value = { key: "k", text: "t" };
    await memory.set(owner, [create(MemoryEntrySchema, { kind: MemoryKind.GOAL, ...value })]);
    await membership.enter("hall", owner);
    await inbox.deliver(create(InboxEventSchema, { ...owner, eventId: "plan:1", event: { case: "plan", value } }));
  }
  expect(await forget({ sessionId: "goes", isClosed: false }), "an event waits").toBe(false);
  expect(await memory.list(goes, MemoryKind.GOAL)).toHaveLength(1);
  expect(await forget({ sessionId: "goes", isClosed: true })).toBe(true);
  const standing = async (owner: Owner) => [
    (await memory.list(owner, MemoryKind.GOAL)).length,
    (await inbox.list(owner)).length,
    (await stores.activeSpaces.read(`${owner.sessionId}.a`))?.value,
  ];
  expect(await standing(goes)).toEqual([0, 0, undefined]);
  expect(await standing(stays)).toEqual([1, 1, "hall"]);
  expect((await membership.space("hall")).members.map(({ sessionId }) => sessionId)).toEqual(["stays"]);
  expect([...(await stores.log.read("hall")).membersById.keys()], "who watches is told").toEqual(["session:stays:a"]);
});

type Owner = Parameters<ReturnType<typeof createMemory>["list"]>[0];
