import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ContentPartSchema } from "#gen/toolbus/content/v1/content_pb.ts";
import { MemberSchema, TextMessageSchema, ToolMessageState } from "#gen/toolbus/space/v1/space_pb.ts";
import { ListSpacesResponseSchema, SendMessageRequestSchema } from "#gen/toolbus/space/v1/space_service_pb.ts";
import type { WatchStart } from "#gen/toolbus/watch/v1/watch_pb.ts";
import { textContent, textOfContent } from "#runtime/content/text.ts";
import { until } from "#runtime/time/until.ts";
import { createStores } from "../subscriptions.ts";
import { clientsOn, collect, openTestSpaces, type TestSpaces } from "../testing/test-spaces.ts";

describe("spaces", () => {
  const stack = new AsyncDisposableStack();
  let room: TestSpaces;
  let clients: TestSpaces["clients"];

  beforeAll(async () => {
    room = stack.use(await openTestSpaces());
    clients = room.clients;
  });
  afterAll(() => stack.disposeAsync());

  const said = async (spaceId: string) =>
    (await clients.spaces.listMessages({ spaceId })).messages
      .map(({ content }) => content.case === "text" && textOfContent(content.value.content))
      .reverse();

  test("TOOL-13 creating a space again gives it as it is; another title is refused", async () => {
    const first = await clients.spaces.createSpace({ spaceId: "again", title: "First" });
    expect(await clients.spaces.createSpace({ spaceId: "again", title: "First" })).toEqual(first);
    await expect(clients.spaces.createSpace({ spaceId: "again", title: "Second" })).rejects.toThrow(
      /already_exists.*there is a space "again" with another title: choose another id$/,
    );
    expect((await clients.spaces.listSpaces({})).spaces.map(({ id }) => id)).toContain("again");
  });

  test("TOOL-13 an unknown space is refused with its name and the names of those that exist", async () => {
    await room.openSpace("known");
    await expect(clients.spaces.getSpace({ spaceId: "nowhere" })).rejects.toThrow(
      /no space "nowhere"; there are .*known/,
    );
    await expect(
      clients.spaces.enterSpace({
        spaceId: "nowhere",
        member: { case: "agent", value: { sessionId: "s", agent: "a" } },
      }),
    ).rejects.toThrow(/not_found/);
  });

  test("TOOL-12 entering a space makes it the session's active one and gives its history; leaving ends that", async () => {
    const spaceId = await room.openSpace("entered");
    await clients.spaces.sendMessage({ spaceId, content: textContent("before you came") });
    const { space, messages } = await clients.spaces.enterSpace({
      spaceId,
      member: { case: "agent", value: { sessionId: "s1", agent: "writer" } },
    });
    expect(messages).toHaveLength(1);
    expect(space?.members.map(({ name }) => name)).toEqual(["local", "writer"]);
    expect((await clients.spaces.getActiveSpace({ sessionId: "s1", agent: "writer" })).spaceId).toBe(spaceId);
    const member = { case: "agent", value: { sessionId: "s1", agent: "writer" } } as const;
    expect((await clients.spaces.leaveSpace({ spaceId, member })).left).toBe(true);
    expect((await clients.spaces.leaveSpace({ spaceId, member })).left).toBe(false);
    expect((await clients.spaces.getActiveSpace({ sessionId: "s1", agent: "writer" })).spaceId).toBe("");
    expect((await clients.spaces.getSpace({ spaceId })).space?.members.map(({ name }) => name)).toEqual(["local"]);
  });

  test("TOOL-12 entering another space leaves the first", async () => {
    const [one, two] = [await room.openSpace("one", "mover"), await room.openSpace("two")];
    await clients.spaces.enterSpace({
      spaceId: two,
      member: { case: "agent", value: { sessionId: "one-mover", agent: "mover" } },
    });
    expect((await clients.spaces.getSpace({ spaceId: one })).space?.members).toEqual([]);
    expect((await clients.spaces.getActiveSpace({ sessionId: "one-mover", agent: "mover" })).spaceId).toBe(two);
  });

  test("TOOL-12 leaving a space again leaves no space that the agent has entered since", async () => {
    const [one, two] = [await room.openSpace("left", "walker"), await room.openSpace("next")];
    const member = { case: "agent", value: { sessionId: "left-walker", agent: "walker" } } as const;
    expect((await clients.spaces.leaveSpace({ spaceId: one, member })).left).toBe(true);
    await clients.spaces.enterSpace({ spaceId: two, member });
    expect((await clients.spaces.leaveSpace({ spaceId: one, member })).left).toBe(false);
    expect((await clients.spaces.getActiveSpace(member.value)).spaceId).toBe(two);
    expect((await clients.spaces.getSpace({ spaceId: two })).space?.members.map(({ name }) => name)).toEqual([
      "walker",
    ]);
  });

  test("TOOL-13 messages of many writers at once all stand in one order, and are paged from the latest", async () => {
    const spaceId = await room.openSpace("crowd");
    const texts = Array.from({ length: 20 }, (_, index) => `message ${index}`);
    await Promise.all(texts.map((text) => clients.spaces.sendMessage({ spaceId, content: textContent(text) })));
    const all = await clients.spaces.listMessages({ spaceId });
    expect(all.totalSize).toBe(20);
    const positions = all.messages.map(({ sequence }) => Number(sequence));
    expect(positions).toEqual(positions.toSorted((a, b) => b - a));
    const page = await clients.spaces.listMessages({ spaceId, skip: 5, pageSize: 3 });
    expect(page.messages.map(({ id }) => id)).toEqual(all.messages.slice(5, 8).map(({ id }) => id));
    expect((await said(spaceId)).toSorted()).toEqual(texts.toSorted());
  });

  test("TOOL-13 a message repeated under its id stands once, and nobody can take another's id", async () => {
    const spaceId = await room.openSpace("repeated");
    const message = { spaceId, content: textContent("once"), messageId: "m1" };
    const sent = await Promise.all(Array.from({ length: 20 }, () => clients.spaces.sendMessage(message)));
    expect(new Set(sent.map(({ message }) => message?.sequence)).size).toBe(1);
    expect(await said(spaceId)).toEqual(["once"]);
    await expect(clientsOn(room.bus, "mallory").spaces.sendMessage(message)).rejects.toThrow(/already_exists/);
  });

  test("TOOL-13 a message is a list of parts; one without text, too long, or of an unknown kind is refused", async () => {
    const spaceId = await room.openSpace("parts");
    const content = [...textContent("one"), ...textContent("two")];
    expect((await clients.spaces.sendMessage({ spaceId, content })).message?.content.value).toMatchObject({ content });
    const half = textContent("x".repeat(131_072));
    await clients.spaces.sendMessage({ spaceId, content: [...textContent("y".repeat(131_071)), ...half] });
    const refused = {
      "has no text": [],
      "a kind that is not taken here": [{}],
      "262145 characters": [...half, ...half],
    };
    for (const [why, given] of Object.entries(refused))
      await expect(clients.spaces.sendMessage({ spaceId, content: given })).rejects.toThrow(why);
  });

  test("TOOL-13 an agent speaks only where it is", async () => {
    const spaceId = await room.openSpace("closed");
    const author = { case: "agent", value: { sessionId: "elsewhere", agent: "lost" } } as const;
    await expect(clients.spaces.sendMessage({ spaceId, content: textContent("hello"), author })).rejects.toThrow(
      /session elsewhere is not in space "closed"/,
    );
  });

  test("TOOL-13 a watch gives what stands from a sequence on and then what comes, and resumes without a gap", async () => {
    const spaceId = await room.openSpace("watched");
    await clients.spaces.sendMessage({ spaceId, content: textContent("one") });
    const first = await collect(clients.spaces.watchSpace({ spaceId, fromSequence: 0n }), 2, () =>
      clients.spaces.sendMessage({ spaceId, content: textContent("two") }),
    );
    expect(first.map(({ event }) => event.case)).toEqual(["memberJoined", "messagePosted"]);
    const next = (first.at(-1)?.sequence ?? 0n) + 1n;
    const [second] = await collect(clients.spaces.watchSpace({ spaceId, fromSequence: next }), 1);
    expect(second?.event.case === "messagePosted" && second.event.value.content.value).toMatchObject({
      content: textContent("two"),
    });
  });

  test("TOOL-13 what is said reaches the inboxes of the other agents in the space, never the author's own", async () => {
    const spaceId = await room.openSpace("office", "ann", "bob");
    await clients.spaces.sendMessage({
      spaceId,
      content: textContent("hi bob"),
      author: { case: "agent", value: { sessionId: "office-ann", agent: "ann" } },
    });
    const bob = { sessionId: "office-bob", agent: "bob" };
    const events = await until(async () => {
      const { events } = await clients.inbox.listInboxEvents(bob);
      return events.length > 0 && events;
    });
    expect(events.map(({ event }) => event.value)).toMatchObject([
      { spaceId, author: "ann", content: textContent("hi bob") },
    ]);
    await clients.spaces.sendMessage({
      spaceId,
      content: textContent("a person"),
      author: { case: "personName", value: "Eve" },
    });
    await until(async () => (await clients.inbox.listInboxEvents(bob)).events.length === 2);
    const ann = await clients.inbox.listInboxEvents({ sessionId: "office-ann", agent: "ann" });
    expect(ann.events.map(({ event }) => event.value)).toMatchObject([
      { author: "Eve", content: textContent("a person") },
    ]);
  });

  test("TOOL-10 a shown call goes from running to complete, keeps its id and place, and reaches no inbox", async () => {
    const spaceId = await room.openSpace("shown", "doer", "other");
    const record = (status: ToolMessageState, more = {}) =>
      clients.toolMessages.recordToolMessage({
        spaceId,
        sessionId: "shown-doer",
        agent: "doer",
        message: { callId: "c1", tool: "ask", state: status, ...more },
      });
    const { message: started } = await record(ToolMessageState.RUNNING, { argumentsJson: "{}" });
    await clients.spaces.sendMessage({ spaceId, content: textContent("after it") });
    await record(ToolMessageState.REQUIRES_ACTION);
    await record(ToolMessageState.REQUIRES_ACTION);
    const { message: done } = await record(ToolMessageState.COMPLETE, { result: { outputJson: "1" } });
    expect([done?.id, done?.sequence]).toEqual([started?.id, started?.sequence]);
    expect(done?.content.value).toMatchObject({ tool: "ask", argumentsJson: "{}", result: { outputJson: "1" } });
    const { messages } = await clients.spaces.listMessages({ spaceId });
    expect(messages.map(({ content }) => content.case)).toEqual(["text", "tool"]);
    const { message: late } = await record(ToolMessageState.RUNNING, { argumentsJson: "{" });
    expect(late?.content.value).toMatchObject({ state: ToolMessageState.COMPLETE, argumentsJson: "{}" });
    const events = await collect(clients.spaces.watchSpace({ spaceId, fromSequence: 0n }), 7);
    expect(events.map(({ event }) => event.case).filter((kind) => kind?.startsWith("tool"))).toEqual([
      "toolStarted",
      "toolRequiresAction",
      "toolDone",
    ]);
    const other = { sessionId: "shown-other", agent: "other" };
    await until(async () => (await clients.inbox.listInboxEvents(other)).events.length === 1);
  });

  test("TOOL-10 partial arguments of a call that runs are streamed, and its message says the last of them", async () => {
    const spaceId = await room.openSpace("partial", "doer");
    const { update } = await firstOf(clients.spaces.watchSpace({ spaceId }));
    const { nextSequence } = update.value as WatchStart;
    for (const argumentsJson of ['{"te', '{"text":"h', '{"text":"hi"}']) {
      await clients.toolMessages.recordToolMessage({
        ...{ spaceId, sessionId: "partial-doer", agent: "doer" },
        message: { callId: "p1", tool: "say", state: ToolMessageState.RUNNING, argumentsJson },
      });
    }
    const events = await collect(clients.spaces.watchSpace({ spaceId, fromSequence: nextSequence }), 3);
    expect(events.map(({ event }) => event.case)).toEqual(["toolStarted", "toolStreaming", "toolStreaming"]);
    const { messages } = await clients.spaces.listMessages({ spaceId });
    expect(messages.map(({ content }) => content.value)).toMatchObject([{ argumentsJson: '{"text":"hi"}' }]);
  });

  test("TOOL-10 no message is a reply: what is sent names a space, an author and an id of its own, and no other message", async () => {
    const namesOf = ({ fields }: DescMessage) => fields.map(({ name }) => name);
    expect(namesOf(SendMessageRequestSchema)).toEqual(["space_id", "content", "agent", "person_name", "message_id"]);
    expect(namesOf(TextMessageSchema)).toEqual(["content"]);
    const parts = namesOf(ContentPartSchema).join(" ");
    expect(parts).not.toMatch(/reply|message|parent|thread/);
  });

  test("TOOL-13 a watch from now on says first where it begins, so that nothing is missed before its first event", async () => {
    const spaceId = await room.openSpace("quiet");
    await clients.spaces.sendMessage({ spaceId, content: textContent("before") });
    const begun = await firstOf(clients.spaces.watchSpace({ spaceId }));
    expect(begun.update.case).toBe("start");
    await clients.spaces.sendMessage({ spaceId, content: textContent("while nobody watched") });
    const [event] = await collect(
      clients.spaces.watchSpace({ spaceId, fromSequence: (begun.update.value as WatchStart).nextSequence }),
      1,
    );
    expect(event?.event.case === "messagePosted" && event.event.value.content.value).toMatchObject({
      content: textContent("while nobody watched"),
    });
  });

  test("TOOL-13 pages go on from their token though messages come in between; a token of nobody's is refused", async () => {
    const spaceId = await room.openSpace("paged");
    const texts = Array.from({ length: 10 }, (_, index) => `${index}`);
    for (const text of texts) await clients.spaces.sendMessage({ spaceId, content: textContent(text) });
    const read: unknown[] = [];
    for (let pageToken = "", pages = 0; pages === 0 || pageToken !== ""; pages++) {
      const page = await clients.spaces.listMessages({ spaceId, pageSize: 4, pageToken });
      read.push(...page.messages.map(({ content }) => content.case === "text" && textOfContent(content.value.content)));
      await clients.spaces.sendMessage({ spaceId, content: textContent(`in between ${pages}`) });
      pageToken = page.nextPageToken;
    }
    expect(read).toEqual(texts.toReversed());
    await expect(clients.spaces.listMessages({ spaceId, pageToken: "x" })).rejects.toThrow(/invalid_argument/);
  });

  test("TOOL-13 spaces are listed by id, in pages", async () => {
    const ids: string[] = [];
    for (let pageToken = "", pages = 0; pages === 0 || pageToken !== ""; pages++) {
      const page = await clients.spaces.listSpaces({ pageSize: 2, pageToken });
      ids.push(...page.spaces.map(({ id }) => id));
      pageToken = page.nextPageToken;
    }
    expect(ids.length).toBeGreaterThan(2);
    expect(ids).toEqual((await clients.spaces.listSpaces({})).spaces.map(({ id }) => id));
    await expect(clients.spaces.listSpaces({ pageToken: "lobby" })).rejects.toThrow(
      /page_token: comes from no previous/,
    );
    expect(ids).toEqual(ids.toSorted());
  });

  test("SEC-5 a page of spaces fits an answer, however many members they have", async () => {
    const names = Array.from({ length: 8 }, (_, n) => `zz-crowded-${n}`);
    for (const spaceId of names) {
      await clients.spaces.createSpace({ spaceId });
      const members = Array.from({ length: 4_000 }, (_, n) => create(MemberSchema, { id: `${"m".repeat(150)}${n}` }));
      await createStores(room.bus).spaces.update(spaceId, (space) => space && { ...space, members });
    }
    const ids: string[] = [];
    for (let pageToken = "", pages = 0; pages === 0 || pageToken !== ""; pages++) {
      const page = await clients.spaces.listSpaces({ pageToken });
      expect(toBinary(ListSpacesResponseSchema, page).length).toBeLessThan(4 * 2 ** 20);
      ids.push(...page.spaces.map(({ id }) => id));
      pageToken = page.nextPageToken;
    }
    expect(ids.slice(-8)).toEqual(names);
  });
});

async function firstOf<T>(stream: AsyncIterable<T>): Promise<T> {
  for await (const value of stream) return value;
  throw new Error("the stream ended");
}
