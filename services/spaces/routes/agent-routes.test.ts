import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MemoryKind } from "#gen/toolbus/space/v1/memory_pb.ts";
import { openTestSpaces, type TestSpaces, toolResult } from "../testing/test-spaces.ts";

describe("what belongs to an agent: inbox, memory, built-in tools", () => {
  const stack = new AsyncDisposableStack();
  let room: TestSpaces;
  let clients: TestSpaces["clients"];

  beforeAll(async () => {
    room = stack.use(await openTestSpaces());
    clients = room.clients;
  });
  afterAll(() => stack.disposeAsync());

  test("TOOL-9 an event is delivered once, while it waits and after it joined a run", async () => {
    const owner = { sessionId: "inbox1", agent: "writer" };
    const event = toolResult(owner, "tr:call1");
    const delivered = await Promise.all([1, 2, 3].map(() => clients.delivery.deliverEvent({ event })));
    expect(delivered.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    expect((await clients.inbox.listInboxEvents({ ...owner, agent: "another" })).events).toEqual([]);
    const { events } = await clients.inbox.listInboxEvents(owner);
    expect(events.map(({ eventId }) => eventId)).toEqual(["tr:call1"]);
    await clients.delivery.acknowledgeInbox({ ...owner, eventIds: ["tr:call1"] });
    await clients.delivery.acknowledgeInbox({ ...owner, eventIds: ["tr:call1"] });
    expect((await clients.inbox.listInboxEvents(owner)).events).toEqual([]);
    expect((await clients.delivery.deliverEvent({ event })).duplicate).toBe(true);
    expect((await clients.inbox.listInboxEvents(owner)).events).toEqual([]);
  });

  test("TOOL-9 a watch of an inbox gives what waits and then what comes", async () => {
    const owner = { sessionId: "inbox2", agent: "writer" };
    await clients.delivery.deliverEvent({ event: toolResult(owner, "tr:first") });
    const stream = clients.inbox.watchInboxEvents({ ...owner, fromSequence: 0n });
    const ids: (string | undefined)[] = [];
    for await (const { update } of stream) {
      ids.push(update.case === "event" ? update.value.eventId : update.case);
      if (ids.length === 2) break;
      await clients.delivery.deliverEvent({ event: toolResult({ ...owner, agent: "another" }, "tr:foreign") });
      await clients.delivery.deliverEvent({ event: toolResult(owner, "tr:second") });
    }
    expect(ids).toEqual(["tr:first", "tr:second"]);
  });

  test("TOOL-12 goals, memories and plans are keyed and the agent's own", async () => {
    const owner = { sessionId: "memory1", agent: "writer" };
    const entry = (kind: MemoryKind, key: string, text: string) => ({ kind, key, text });
    await Promise.all([
      clients.memory.setEntries({ ...owner, entries: [entry(MemoryKind.GOAL, "g", "ship")] }),
      clients.memory.setEntries({ ...owner, entries: [entry(MemoryKind.MEMORY, "m", "blue")] }),
    ]);
    await clients.memory.setEntries({ ...owner, entries: [entry(MemoryKind.GOAL, "g", "ship it")] });
    const { entries } = await clients.memory.listEntries(owner);
    expect(entries.map(({ text }) => text)).toEqual(["ship it", "blue"]);
    expect((await clients.memory.listEntries({ ...owner, agent: "another" })).entries).toEqual([]);
    const { deletedCount: deleted } = await clients.memory.deleteEntries({
      ...owner,
      kind: MemoryKind.GOAL,
      keys: ["g", "x"],
    });
    expect(deleted).toBe(1);
    expect((await clients.memory.listEntries({ ...owner, kind: MemoryKind.GOAL })).entries).toEqual([]);
  });

  test("KIND-2 the built-in tools are offered and called as those of any provider", async () => {
    await room.openSpace("tools", "reader");
    const { tools } = await clients.provider.getProvidedTools({});
    expect(tools.map(({ source, tool }) => [source, tool?.visible])).toEqual(tools.map(() => ["", false]));
    const call = async (tool: string, value: object) => {
      const request = {
        callId: `${tool}-1`,
        tool,
        argumentsJson: JSON.stringify(value),
        scope: { sessionId: "t1", agent: "bot" },
      };
      for await (const { event } of clients.provider.executeTool(request)) {
        if (event.case === "result") return { ...JSON.parse(event.value.outputJson), isError: event.value.isError };
      }
    };
    expect(await call("send_message", { text: "hi" })).toMatchObject({
      isError: true,
      error: expect.stringMatching(/enter_space/),
    });
    expect(await call("enter_space", { space_id: "tools" })).toMatchObject({ isError: false, messages: [] });
    await call("send_message", { text: "hi" });
    await call("send_message", { text: "hi" });
    expect(await call("read_messages", {})).toMatchObject({ total: 1, messages: [{ author: "bot", text: "hi" }] });
    expect(await call("enter_space", { space_id: "nowhere" })).toMatchObject({
      isError: true,
      error: expect.stringMatching(/nowhere/),
    });
  });

  test("KIND-2 a watch of the built-in tools gives them at once and ends with its caller", async () => {
    const watching = new AbortController();
    const iterator = clients.provider.watchProvidedTools({}, { signal: watching.signal })[Symbol.asyncIterator]();
    expect((await iterator.next()).value.tools.length).toBeGreaterThan(10);
    watching.abort();
    await expect(iterator.next()).rejects.toThrow(/canceled/);
  });
});
