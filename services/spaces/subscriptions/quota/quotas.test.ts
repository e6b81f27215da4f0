import { randomUUID } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { InboxEventSchema } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { MemoryEntrySchema, MemoryKind } from "#gen/toolbus/space/v1/memory_pb.ts";
import { MemberKind, SpaceEventSchema, ToolMessageState } from "#gen/toolbus/space/v1/space_pb.ts";
import type { StreamName } from "#runtime/bus/declarations/declarations.ts";
import { evict } from "#runtime/bus/quota/eviction.ts";
import { findOverQuota, openQuota } from "#runtime/bus/quota/quota.ts";
import { excessOf, usageBySession } from "#runtime/bus/quota/usage.ts";
import { shrinkStore } from "#runtime/bus/testing/shrink-store.ts";
import { textContent } from "#runtime/content/text.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../../test/harness/bus.ts";
import { createInbox } from "../../inbox/inbox.ts";
import { createMemory } from "../../memory/memory.ts";
import { createStores } from "../../subscriptions.ts";
import { clientsOn, openTestSpaces, type TestSpaces } from "../../testing/test-spaces.ts";
import { createStreamLog } from "../stream-log.ts";
import { INBOXES, MEMORY, openQuotas, spaceEviction } from "./quotas.ts";

const stack = new AsyncDisposableStack();
const { signal } = new AbortController();
const MIB = 2 ** 20;
let room: TestSpaces;

beforeAll(async () => {
  room = stack.use(await openTestSpaces());
  await shrinkStore(room.bus, "KV_toolbus_spaces", MIB);
});
afterAll(() => stack.disposeAsync());

const shrink = (stream: StreamName, maxBytes: number) => shrinkStore(room.bus, stream, maxBytes);

const text = (kib: number) => textContent("x".repeat(kib * 1_024));

test("SEC-6 who holds more than its part has an excess, and nobody else", () => {
  const held = new Map(Object.entries({ small: 10, middle: 100, large: 500, huge: 900 }));
  const excess = excessOf(held, 710);
  expect([...excess]).toEqual([
    ["large", 200],
    ["huge", 600],
  ]);
  expect(excessOf(held, 2_000).size).toBe(0);
});

test("SEC-6 a principal that fills the store of spaces loses its own oldest messages, and nobody else's", async () => {
  const { bus } = room;
  const [alice, mallory] = [clientsOn(bus, "alice"), clientsOn(bus, "mallory")];
  const open = {
    case: "tool",
    value: { callId: "open", tool: "ask", state: ToolMessageState.REQUIRES_ACTION },
  } as const;
  for (const [by, spaceId] of [
    [alice, "hers"],
    [mallory, "his"],
    [mallory, "his-too"],
  ] as const)
    await by.spaces.createSpace({ spaceId });
  const author = { id: "session:s:a", name: "a", kind: MemberKind.AGENT, sessionId: "s" };
  const log = createStreamLog(bus);
  const message = { id: "call:open", spaceId: "his-too", author, content: open };
  const asked = create(SpaceEventSchema, { event: { case: "toolRequiresAction", value: message } });
  await log.append("his-too", 0n, asked);
  await shrink("TOOLBUS_SPACES", 4 * MIB);
  await alice.spaces.sendMessage({ spaceId: "hers", content: text(100), messageId: "hers-1" });
  let refused: unknown;
  for (let n = 0; refused === undefined && n < 40; n++) {
    const spaceId = n % 2 === 0 ? "his" : "his-too";
    const sent = mallory.spaces.sendMessage({ spaceId, content: text(200), messageId: `m${n}` });
    refused = await sent.then(() => undefined, failureFromConnectError);
  }
  expect(refused).toMatchObject({ code: "resource_exhausted", reason: "STORE_FULL" });
  const idsIn = async (spaceId: string) => (await createStreamLog(bus).read(spaceId)).messages.map(({ id }) => id);
  expect(await idsIn("hers"), "nothing was pushed out").toEqual(["hers-1"]);

  const creatorOf = async (spaceId: string) => (await alice.spaces.getSpace({ spaceId })).space?.principal ?? "";
  await until(() => evict(bus, spaceEviction(bus, { log, creatorOf }), signal), { timeoutMs: 20_000 });
  expect(await idsIn("hers")).toEqual(["hers-1"]);
  expect(await idsIn("his")).not.toContain("m0");
  expect((await idsIn("his")).length).toBeGreaterThan(0);
  expect(await idsIn("his-too"), "what waits for an answer stays").toContain("call:open");
  expect(await evict(bus, spaceEviction(bus, { log, creatorOf }), signal), "there is room").toBe(0);
  await alice.spaces.sendMessage({ spaceId: "hers", content: text(100), messageId: "hers-2" });
});

test("SEC-6 a principal that fills the inboxes gets no further event, and what waits stays for everybody", async () => {
  const { bus } = room;
  await shrink("TOOLBUS_INBOX", 2 * MIB);
  const principals = new Map([
    ["a1", "alice"],
    ["m1", "mallory"],
    ["m2", "mallory"],
  ]);
  const principalOf = async (sessionId: string) => principals.get(sessionId);
  const inboxes = usageBySession(bus, { ...INBOXES, findPrincipal: principalOf });
  const append = (sessionId: string, kib: number) => {
    const value = { spaceId: "hall", author: "x", content: text(kib), authorKind: MemberKind.PERSON };
    const event = create(InboxEventSchema, {
      sessionId,
      agent: "a",
      eventId: "msg:1",
      event: { case: "message", value },
    });
    return bus.jetstream.publish(`toolbus.inbox.${sessionId}`, toBinary(InboxEventSchema, event));
  };
  await append("a1", 100);
  for (let n = 0; n < 4; n++) await append(n % 2 === 0 ? "m1" : "m2", 200);
  expect((await findOverQuota(bus, inboxes, signal)).size, "there is room").toBe(0);
  for (let n = 0; n < 4; n++) await append("m1", 200);
  expect([...(await findOverQuota(bus, inboxes, signal)).keys()]).toEqual(["mallory"]);
  await expect(
    (async () => {
      for (;;) await append("m2", 200);
    })(),
    "the store refuses",
  ).rejects.toThrow();
  const { state } = await bus.manager.streams.info("TOOLBUS_INBOX", { subjects_filter: ">" });
  expect(state.subjects?.["toolbus.inbox.a1"], "nothing was pushed out").toBe(1);
});

test("SEC-6 who has its share of all memory is refused more while room is short, may delete, and others go on", async () => {
  const { bus } = room;
  await shrinkStore(bus, "KV_toolbus_memory", 2 ** 20);
  const principalOf = (sessionId: string) => (sessionId.startsWith("a") ? "alice" : "mallory");
  const findPrincipal = async (sessionId: string) => principalOf(sessionId);
  const usage = { ...usageBySession(bus, { ...MEMORY, findPrincipal }), holds: "memory", remedy: "delete entries" };
  await using quota = openQuota(bus, { ...usage, onFault: () => {}, everyMs: 20 });
  const memory = createMemory(createStores(bus).memory, async (session) => quota.requireRoom(principalOf(session)));
  const set = (sessionId: string, kib: number) =>
    memory.set({ sessionId, agent: "a" }, [
      create(MemoryEntrySchema, { kind: MemoryKind.MEMORY, key: `${kib}`, text: "x".repeat(kib * 1_024) }),
    ]);
  await set("a1", 20);
  for (let n = 1; n <= 8; n++) await set(`m${n}`, 100);
  const refused = await until(() => set("m1", 1).then(() => undefined, failureFromConnectError), { timeoutMs: 10_000 });
  expect(refused).toMatchObject({ code: "resource_exhausted", reason: "SHARE_EXCEEDED" });
  expect(refused.message).toMatch(/"mallory" has its share of KV_toolbus_memory: \d+ bytes of memory; delete entries/);
  await set("a1", 21);
  expect(await memory.delete({ sessionId: "m1", agent: "a" }, MemoryKind.MEMORY, ["100"])).toBe(1);
  await until(
    () =>
      set("m1", 1).then(
        () => true,
        () => undefined,
      ),
    { timeoutMs: 10_000 },
  );
});

test("SEC-6 a principal whose spaces take the most creates no more while room is short, and others do", async () => {
  const { bus } = room;
  const [alice, mallory] = [clientsOn(bus, "alice"), clientsOn(bus, "mallory")];
  const title = "x".repeat(1_000);
  await mallory.spaces.createSpace({ spaceId: "shared", grants: { principals: ["alice", "bob"] } });
  const fill = async () => {
    for (let n = 0; n < 2_000; n++) await mallory.spaces.createSpace({ spaceId: `many-${n}`, title });
  };
  expect(await fill().then(() => undefined, failureFromConnectError)).toMatchObject({
    code: "resource_exhausted",
    reason: "SHARE_EXCEEDED",
    message: expect.stringMatching(/^"mallory" has its share of KV_toolbus_spaces: \d+ bytes of spaces/),
  });
  await alice.spaces.createSpace({ spaceId: "one-more" });
  await mallory.spaces.createSpace({ spaceId: "many-0", title }); // which there is
  const principals = ["alice"];
  const granting = () => {
    principals.push(`further-${principals.length}`); // the other instance may have taken the former ones
    const granted = mallory.spaces.setSpaceGrants({ spaceId: "many-0", grants: { principals } });
    return granted.then(() => undefined, failureFromConnectError);
  };
  const refused = await until(granting, { timeoutMs: 30_000, what: "the other instance to know, too" });
  expect(refused).toMatchObject({ reason: "SHARE_EXCEEDED" });
  await mallory.spaces.setSpaceGrants({ spaceId: "shared", grants: { principals: ["alice"] } }); // takes one back
});

test("SEC-6 a principal that fills the inboxes within a second is found out before they are full", async () => {
  await using bus = await openTestBus();
  await shrinkStore(bus, "TOOLBUS_INBOX", 32 * MIB);
  const findPrincipal = async (sessionId: string) => (sessionId.startsWith("a") ? "alice" : "mallory");
  const { log, inbox: store } = createStores(bus);
  const parts = { log, creatorOf: async () => "", sessions: { findPrincipal }, onFault: () => {} };
  await using quotas = openQuotas(bus, parts);
  const { deliver } = createInbox({ store, clock: systemClock, wake: async () => {}, isOverQuota: quotas.isOverQuota });
  const tell = (sessionId: string) => {
    const event = { case: "message", value: { spaceId: "s", messageId: randomUUID(), content: text(16) } } as const;
    return deliver(create(InboxEventSchema, { sessionId, agent: "a", eventId: randomUUID(), event }));
  };
  await tell("a1");
  const fill = async () => {
    for (let n = 0; n < 4_000; n++) await tell(`m${n % 100}`);
  };
  expect(await fill().then(() => undefined, failureFromConnectError)).toMatchObject({ code: "resource_exhausted" });
  const { state } = await bus.manager.streams.info("TOOLBUS_INBOX");
  expect(state.bytes / (32 * MIB)).toBeLessThan(0.95);
  await tell("a1");
}, 60_000);
