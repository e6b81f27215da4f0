import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MemoryKind } from "#gen/toolbus/space/v1/memory_pb.ts";
import { ToolMessageState } from "#gen/toolbus/space/v1/space_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { clientsOn, openTestSpaces, type TestSpaces, toolResult } from "./test-spaces.ts";

describe("whose session it is", () => {
  const stack = new AsyncDisposableStack();
  let room: TestSpaces;
  let alice: TestSpaces["clients"];
  let mallory: TestSpaces["clients"];
  const owner = { sessionId: "alices", agent: "writer" };

  beforeAll(async () => {
    room = stack.use(await openTestSpaces());
    room.sessions.set("alices", { principal: "alice", agent: "writer" });
    alice = clientsOn(room.bus, "alice");
    mallory = clientsOn(room.bus, "mallory");
    await room.openSpace("hall");
    await alice.spaces.enterSpace({ spaceId: "hall", member: { case: "agent", value: owner } });
  });
  afterAll(() => stack.disposeAsync());

  test("ORCH-1 nobody but its owner enters, leaves, speaks, reads or writes through a session", async () => {
    const message = { callId: "c", tool: "t", state: ToolMessageState.RUNNING };
    const entries = [{ kind: MemoryKind.GOAL, key: "g", text: "t" }];
    const attempts = {
      enterSpace: () => mallory.spaces.enterSpace({ spaceId: "hall", member: { case: "agent", value: owner } }),
      leaveSpace: () => mallory.spaces.leaveSpace({ spaceId: "hall", member: { case: "agent", value: owner } }),
      getActiveSpace: () => mallory.spaces.getActiveSpace(owner),
      sendMessage: () =>
        mallory.spaces.sendMessage({
          spaceId: "hall",
          content: textContent("x"),
          author: { case: "agent", value: owner },
        }),
      recordToolMessage: () => mallory.toolMessages.recordToolMessage({ ...owner, spaceId: "hall", message }),
      deliverEvent: () => mallory.delivery.deliverEvent({ event: toolResult(owner, "tr:x") }),
      listInboxEvents: () => mallory.inbox.listInboxEvents(owner),
      acknowledgeInbox: () => mallory.delivery.acknowledgeInbox({ ...owner, eventIds: ["x"] }),
      watchInboxEvents: () => first(mallory.inbox.watchInboxEvents(owner)),
      setEntries: () => mallory.memory.setEntries({ ...owner, entries }),
      deleteEntries: () => mallory.memory.deleteEntries({ ...owner, kind: MemoryKind.GOAL, keys: ["g"] }),
      listEntries: () => mallory.memory.listEntries(owner),
      getRunContext: () => mallory.contexts.getRunContext(owner),
    };
    for (const [name, attempt] of Object.entries(attempts)) {
      await expect(attempt(), name).rejects.toThrow(/permission_denied.*session alices belongs to another caller/);
    }
    expect((await alice.spaces.getActiveSpace(owner)).spaceId).toBe("hall");
    expect((await alice.inbox.listInboxEvents(owner)).events).toEqual([]);
    expect((await alice.memory.listEntries(owner)).entries).toEqual([]);
  });

  test("ORCH-1 the built-in tools keep an agent's own from a run that another principal started, and let it skip", async () => {
    const call = async (clients: TestSpaces["clients"], tool: string, value: object) => {
      const scope = { ...owner, principal: "alice" };
      const request = { callId: `own-${tool}`, tool, argumentsJson: JSON.stringify(value), scope };
      for await (const { event } of clients.provider.executeTool(request))
        if (event.case === "result") return event.value;
      return undefined;
    };
    const goals = { entries: [{ key: "g", text: "t" }] };
    const refused = { isError: true, outputJson: '{"error":"session alices belongs to another caller"}' };
    expect(await call(mallory, "set_goals", goals)).toMatchObject(refused);
    expect(await call(mallory, "leave_space", {})).toMatchObject(refused);
    expect(await call(mallory, "skip", {})).toMatchObject({ isError: false });
    expect(await call(alice, "set_goals", goals)).toMatchObject({ isError: false });
    expect((await alice.spaces.getActiveSpace(owner)).spaceId).toBe("hall");
    await alice.memory.deleteEntries({ ...owner, kind: MemoryKind.GOAL, keys: ["g"] });
  });

  test("ORCH-1 a session that does not exist belongs to nobody", async () => {
    await expect(alice.memory.listEntries({ sessionId: "nowhere", agent: "a" })).rejects.toThrow(/not_found/);
  });

  test("ORCH-1 who names no agent means the one that is active in the session", async () => {
    room.sessions.set("switched", { principal: "alice", agent: "before" });
    await alice.spaces.enterSpace({ spaceId: "hall", member: { case: "agent", value: { sessionId: "switched" } } });
    expect((await alice.spaces.getActiveSpace({ sessionId: "switched" })).spaceId).toBe("hall");
    room.sessions.set("switched", { principal: "alice", agent: "after" });
    expect((await alice.spaces.getActiveSpace({ sessionId: "switched" })).spaceId).toBe("");
    expect((await alice.spaces.getActiveSpace({ sessionId: "switched", agent: "before" })).spaceId).toBe("hall");
  });

  test("ORCH-1 two agents of a session share neither active space, memory nor inbox", async () => {
    await room.openSpace("library");
    const [old, young] = [
      { sessionId: "pair", agent: "old" },
      { sessionId: "pair", agent: "young" },
    ];
    const { spaces, inbox, memory, delivery, contexts } = room.clients;
    await spaces.enterSpace({ spaceId: "hall", member: { case: "agent", value: old } });
    await spaces.enterSpace({ spaceId: "library", member: { case: "agent", value: young } });
    await memory.setEntries({ ...old, entries: [{ kind: MemoryKind.MEMORY, key: "m", text: "of the old" }] });
    await delivery.deliverEvent({ event: toolResult(old, "tr:old") });
    const [told, untold] = [await contexts.getRunContext(old), await contexts.getRunContext(young)];
    expect([told.spaceId, told.events.length]).toEqual(["hall", 1]);
    expect(JSON.stringify(told.parts)).toContain("of the old");
    expect([untold.spaceId, untold.events.length]).toEqual(["library", 0]);
    expect(JSON.stringify(untold.parts)).not.toContain("of the old");
    await delivery.acknowledgeInbox({ ...young, eventIds: ["tr:old"] });
    expect((await delivery.deliverEvent({ event: toolResult(young, "tr:old") })).duplicate).toBe(false);
    await delivery.acknowledgeInbox({ ...young, eventIds: ["tr:old"] });
    expect((await inbox.listInboxEvents(old)).events).toHaveLength(1);
    await spaces.leaveSpace({ spaceId: "library", member: { case: "agent", value: young } });
    expect((await spaces.getActiveSpace(old)).spaceId).toBe("hall");
  });

  test("TOOL-13 a person joins, speaks and leaves under the own name alone, and everybody may", async () => {
    await room.openSpace("square");
    const joined = await mallory.spaces.enterSpace({ spaceId: "square", member: { case: "personName", value: "Mal" } });
    expect(joined.space?.members.map(({ id, name }) => [id, name])).toEqual([["mallory", "Mal (mallory)"]]);
    await alice.spaces.sendMessage({ spaceId: "square", content: textContent("hello") });
    expect((await alice.spaces.leaveSpace({ spaceId: "square" })).left).toBe(true);
    expect((await alice.spaces.leaveSpace({ spaceId: "square" })).left).toBe(false);
    await expect(alice.spaces.leaveSpace({ spaceId: "absent" })).rejects.toThrow(/not_found.*no space "absent"/);
    const { space } = await alice.spaces.getSpace({ spaceId: "square" });
    expect(space?.members.map(({ name }) => name)).toEqual(["Mal (mallory)"]);
    for (const value of ["Tool Result", "tool:result", '["Plan"]'])
      await expect(
        mallory.spaces.enterSpace({ spaceId: "square", member: { case: "personName", value } }),
      ).rejects.toThrow(/is no name for a person/);
  });

  test("SEC-2 nobody speaks as somebody else: a name that a person chose stands beside its principal", async () => {
    await room.openSpace("forum", "listener");
    const content = textContent("go ahead");
    for (const value of ["alice", "mallory"])
      await mallory.spaces.sendMessage({ spaceId: "forum", content, author: { case: "personName", value } });
    const { messages } = await alice.spaces.listMessages({ spaceId: "forum" });
    expect(messages.map(({ author }) => author?.name)).toEqual(["mallory", "alice (mallory)"]);
  });

  test("TOOL-10 an agent changes the message of no other agent's call", async () => {
    const message = { callId: "hers", tool: "ask", state: ToolMessageState.RUNNING };
    await alice.toolMessages.recordToolMessage({ ...owner, spaceId: "hall", message });
    room.sessions.set("mallorys", { principal: "mallory", agent: "bot" });
    const forged = { ...message, state: ToolMessageState.COMPLETE };
    const attempt = mallory.toolMessages.recordToolMessage({
      ...{ sessionId: "mallorys", agent: "bot", spaceId: "hall" },
      message: forged,
    });
    await expect(attempt).rejects.toThrow(/call of another agent/);
  });
});

async function first<T>(stream: AsyncIterable<T>): Promise<T | undefined> {
  for await (const value of stream) return value;
  return undefined;
}
