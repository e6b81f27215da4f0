import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { type InboxEvent, InboxEventSchema } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { createInbox, type InboxStore, type Mark, mostWaiting } from "./inbox.ts";

const owner = { sessionId: "s", agent: "a" };

function event(eventId: string): InboxEvent {
  return create(InboxEventSchema, { ...owner, eventId, event: { case: "plan", value: { key: "k", text: "t" } } });
}

/** A store that dies where it is told to: at the n-th of its writes. */
function createMortalStore() {
  let events: InboxEvent[] = [];
  const marks = new Map<string, Mark>();
  const endOf = () => ({ count: events.length, lastSequence: Number(events.at(-1)?.sequence ?? 0) });
  let last = 0;
  const store = {
    writesLeft: Number.POSITIVE_INFINITY,
    eventsRead: 0,
    beforeAppend: async () => {},
    write() {
      if (store.writesLeft-- <= 0) throw new Error("the process died");
    },
  };
  const inboxStore: InboxStore = {
    async read(_, fromSequence = 0) {
      const read = events.filter(({ sequence }) => sequence >= fromSequence);
      store.eventsRead += read.length;
      return read;
    },
    end: async () => endOf(),
    async append(appended, after) {
      await store.beforeAppend();
      store.write();
      if (after !== endOf().lastSequence) return undefined;
      events.push({ ...appended, sequence: BigInt(++last) });
      return last;
    },
    async remove(removed) {
      store.write();
      events = events.filter(({ sequence }) => sequence !== removed.sequence);
    },
    async *follow() {
      for (const value of events) yield { case: "event", value };
    },
    async mark(_, eventId) {
      const standing = marks.get(eventId) ?? "none";
      if (standing !== "none") return standing;
      store.write();
      marks.set(eventId, "waiting");
      return "none";
    },
    async markSeen(_, eventId) {
      store.write();
      marks.set(eventId, "seen");
    },
  };
  const wakes: string[] = [];
  const wake = async (sessionId: string) => {
    store.write();
    wakes.push(sessionId);
  };
  let isFull = false;
  const isOverQuota = async () => isFull;
  const crowd = () => {
    isFull = true;
  };
  const inbox = createInbox({ store: inboxStore, clock: createManualClock(), wake, isOverQuota });
  return { store, wakes, crowd, inbox };
}

describe("an inbox", () => {
  test("SEC-6 of whoever has its share of all inboxes takes nothing further, and knows what it has", async () => {
    const { inbox, crowd } = createMortalStore();
    await inbox.deliver(event("tr:1"));
    crowd();
    await expect(inbox.deliver(event("tr:2"))).rejects.toMatchObject({
      code: "resource_exhausted",
      reason: "INBOX_FULL",
    });
    expect(await inbox.deliver(event("tr:1"))).toEqual({ duplicate: true });
    expect((await inbox.list(owner)).map(({ eventId }) => eventId)).toEqual(["tr:1"]);
  });

  test("TOOL-9 an event that came and left while it was repeated is not there again", async () => {
    const { store, inbox } = createMortalStore();
    store.beforeAppend = async () => {
      store.beforeAppend = async () => {};
      await inbox.deliver(event("tr:1"));
      await inbox.acknowledge(owner, ["tr:1"]);
    };
    expect(await inbox.deliver(event("tr:1"))).toEqual({ duplicate: true });
    expect(await inbox.list(owner)).toEqual([]);
  });

  test("TOOL-9 an event that is repeated at any time is there once or was seen, wherever an acknowledgement died", async () => {
    for (const writes of [0, 1, 2]) {
      const { store, inbox } = createMortalStore();
      await inbox.deliver(event("tr:1"));
      store.writesLeft = writes;
      await inbox.acknowledge(owner, ["tr:1"]).catch(() => {}); // the death that is tried
      store.writesLeft = Number.POSITIVE_INFINITY;
      expect(await inbox.deliver(event("tr:1"))).toEqual({ duplicate: true });
      await inbox.acknowledge(owner, ["tr:1"]);
      expect(await inbox.list(owner)).toEqual([]);
      expect(await inbox.deliver(event("tr:1"))).toEqual({ duplicate: true });
    }
  });

  test("TOOL-9 an event that waits has woken its session, wherever its delivery died; one that was seen wakes nobody", async () => {
    for (const writes of [0, 1, 2]) {
      const { store, wakes, inbox } = createMortalStore();
      store.writesLeft = writes;
      await inbox.deliver(event("tr:1")).catch(() => {}); // the death that is tried
      store.writesLeft = Number.POSITIVE_INFINITY;
      expect(await inbox.deliver(event("tr:1"))).toEqual({ duplicate: writes === 2 });
      expect(wakes).toEqual(["s"]);
      await inbox.acknowledge(owner, ["tr:1"]);
      await inbox.deliver(event("tr:1"));
      expect(wakes).toEqual(["s"]);
    }
  });

  test("TOOL-9 in an inbox that is full the oldest words make room, results and plans do not", async () => {
    const { inbox } = createMortalStore();
    const words = (eventId: string) =>
      create(InboxEventSchema, {
        ...owner,
        eventId,
        event: { case: "message", value: { author: "Eve", content: textContent("x") } },
      });
    await inbox.deliver(event("tr:first"));
    await inbox.deliver(words("msg:1"));
    for (let index = 2; index < mostWaiting; index++) await inbox.deliver(event(`tr:${index}`));
    await inbox.deliver(event("tr:one more"));
    const waiting = (await inbox.list(owner)).map(({ eventId }) => eventId);
    expect([waiting.length, waiting.at(0), waiting.at(-1)]).toEqual([mostWaiting + 1, "tr:first", "tr:one more"]);
    expect(waiting.at(-2), "what is gone is told").toMatch(/^lost:1:/);
    expect(await inbox.deliver(words("msg:1"))).toEqual({ duplicate: true });
    await expect(inbox.deliver(event("tr:too many"))).rejects.toThrow(/wait for the agents of the session/);
    expect(await inbox.deliver(event("tr:first"))).toEqual({ duplicate: true });
  });

  test("SEC-6 an agent is told how many words its full inbox has forgotten, in one notice that grows", async () => {
    const { inbox } = createMortalStore();
    const words = (eventId: string, agent = "a") => {
      const value = { author: "Eve", content: textContent("x") };
      return create(InboxEventSchema, { ...owner, agent, eventId, event: { case: "message", value } });
    };
    await inbox.deliver(words("msg:other", "b"));
    for (let index = 1; index < mostWaiting + 5; index++) await inbox.deliver(words(`msg:${index}`));
    const told = async (agent: string) => (await inbox.list({ ...owner, agent })).map(({ text }) => text);
    const notices = (texts: string[]) => texts.filter((text) => text.startsWith("[toolbus: "));
    expect(notices(await told("a"))).toEqual([
      '[toolbus: "4 earlier messages found no room in your inbox; read_messages shows what your space has of them"]',
    ]);
    expect(notices(await told("b"))).toEqual([
      '[toolbus: "1 earlier messages found no room in your inbox; read_messages shows what your space has of them"]',
    ]);
    expect(await told("a")).toHaveLength(mostWaiting + 1);
  });

  test("TOOL-9 of many deliveries of one event at once one is stored, and of many events each", async () => {
    const { inbox } = createMortalStore();
    const ids = Array.from({ length: 200 }, (_, n) => `tr:${n % 20}`);
    const delivered = await Promise.all(ids.map((id) => inbox.deliver(event(id))));
    expect(delivered.filter(({ duplicate }) => !duplicate)).toHaveLength(20);
    expect(new Set((await inbox.list(owner)).map(({ eventId }) => eventId)).size).toBe(20);
    expect(await inbox.list(owner)).toHaveLength(20);
  });

  test("what a delivery reads does not grow with what waits", async () => {
    const { store, inbox } = createMortalStore();
    for (let number = 0; number < mostWaiting; number++) await inbox.deliver(event(`tr:${number}`));
    expect(store.eventsRead).toBe(0);
  });

  test("what is for nobody is refused", async () => {
    const { inbox } = createMortalStore();
    await expect(inbox.deliver({ ...event("x"), agent: "" })).rejects.toThrow(/agent/);
    await expect(inbox.deliver({ ...event("x"), sessionId: "a.b" })).rejects.toThrow(/session/);
    await expect(inbox.deliver(create(InboxEventSchema, { ...owner, eventId: "x" }))).rejects.toThrow(/event/);
  });
});
