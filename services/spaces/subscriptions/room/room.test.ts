import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { InboxEventSchema } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { MemberKind, SpaceEventSchema, ToolMessageState } from "#gen/toolbus/space/v1/space_pb.ts";
import type { StreamName } from "#runtime/bus/declarations/declarations.ts";
import { textContent } from "#runtime/content/text.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { until } from "#runtime/time/until.ts";
import { clientsOn, openTestSpaces, type TestSpaces } from "../../testing/test-spaces.ts";
import { createStreamLog } from "../stream-log.ts";
import { excessOf } from "./fair-share.ts";
import { findCrowding } from "./inbox-room.ts";
import { makeSpaceRoom } from "./space-room.ts";

const stack = new AsyncDisposableStack();
const { signal } = new AbortController();
const MIB = 2 ** 20;
let room: TestSpaces;

beforeAll(async () => {
  room = stack.use(await openTestSpaces());
});
afterAll(() => stack.disposeAsync());

async function shrink(stream: StreamName, maxBytes: number): Promise<void> {
  const { config } = await room.bus.manager.streams.info(stream);
  await room.bus.manager.streams.update(stream, { ...config, max_bytes: maxBytes });
}

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
  await until(() => makeSpaceRoom(bus, { log, creatorOf }, signal), { timeoutMs: 20_000 });
  expect(await idsIn("hers")).toEqual(["hers-1"]);
  expect(await idsIn("his")).not.toContain("m0");
  expect((await idsIn("his")).length).toBeGreaterThan(0);
  expect(await idsIn("his-too"), "what waits for an answer stays").toContain("call:open");
  expect(await makeSpaceRoom(bus, { log, creatorOf }, signal), "there is room").toBe(0);
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
  expect((await findCrowding(bus, principalOf, signal)).size, "there is room").toBe(0);
  for (let n = 0; n < 4; n++) await append("m1", 200);
  expect(await findCrowding(bus, principalOf, signal)).toEqual(new Set(["mallory"]));
  await expect(
    (async () => {
      for (;;) await append("m2", 200);
    })(),
    "the store refuses",
  ).rejects.toThrow();
  const { state } = await bus.manager.streams.info("TOOLBUS_INBOX", { subjects_filter: ">" });
  expect(state.subjects?.["toolbus.inbox.a1"], "nothing was pushed out").toBe(1);
});
