import { create } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SubmitToolResultResponseSchema, ToolCallService } from "#gen/toolbus/router/v1/tool_calls_pb.ts";
import {
  type InboxEvent,
  InboxEventSchema,
  MemoryKind,
  type SpaceEvent,
  ToolMessageStatus,
} from "#gen/toolbus/space/v1/space_pb.ts";
import { InboxService } from "#gen/toolbus/spaces/v1/inbox_pb.ts";
import { MemoryService } from "#gen/toolbus/spaces/v1/memory_pb.ts";
import { SpaceService } from "#gen/toolbus/spaces/v1/spaces_pb.ts";
import { ToolProviderService } from "#gen/toolbus/tool/v1/provider_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { createLogger } from "#runtime/lifecycle/logger.ts";
import { clientFor } from "#runtime/rpc/client.ts";
import { clientInterceptors, serverInterceptors } from "#runtime/rpc/interceptors.ts";
import { serveOnNats } from "#runtime/rpc/nats/server.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus, type TestBus } from "../../test/harness/bus.ts";
import { readConfig } from "./config.ts";
import { openService } from "./service.ts";

const logger = createLogger({ name: "spaces", level: "silent" });

describe("spaces on the bus", () => {
  const stack = new AsyncDisposableStack();
  const stop = new AbortController();
  const submissions = new Map<string, string>();
  let bus: TestBus;
  let clients: ReturnType<typeof clientsOn>;

  beforeAll(async () => {
    bus = stack.use(await openTestBus());
    stack.use(await openFakeRouter(bus, submissions));
    for (const instance of ["a", "b"]) stack.use(await openInstance(bus, instance, stop.signal));
    clients = clientsOn(bus);
  });
  afterAll(() => stack.disposeAsync());

  /** A space of the test's own, with an agent in it. */
  async function openSpace(spaceId: string, ...agents: string[]) {
    await clients.spaces.createSpace({ spaceId, title: `Space ${spaceId}` });
    for (const agent of agents) await clients.spaces.enterSpace({ sessionId: `${spaceId}-${agent}`, spaceId, agent });
    return spaceId;
  }
  const said = async (spaceId: string) =>
    (await clients.spaces.listMessages({ spaceId })).messages.map(
      ({ content }) => content.case === "text" && content.value.text,
    );

  test("TOOL-13 creating a space again gives it as it is", async () => {
    await clients.spaces.createSpace({ spaceId: "again", title: "First" });
    const { space } = await clients.spaces.createSpace({ spaceId: "again", title: "Second" });
    expect(space?.title).toBe("First");
    expect((await clients.spaces.listSpaces({})).spaces.map(({ id }) => id)).toContain("again");
  });

  test("TOOL-13 an unknown space is refused with its name and the names of those that exist", async () => {
    await openSpace("known");
    await expect(clients.spaces.getSpace({ spaceId: "nowhere" })).rejects.toThrow(
      /no space "nowhere"; there are .*known/,
    );
    await expect(clients.spaces.enterSpace({ sessionId: "s", spaceId: "nowhere", agent: "a" })).rejects.toThrow(
      /not_found/,
    );
  });

  test("TOOL-12 entering a space makes it the session's active one and gives its history; leaving ends that", async () => {
    const spaceId = await openSpace("entered");
    await clients.spaces.sendMessage({ spaceId, text: "before you came" });
    const { space, messages } = await clients.spaces.enterSpace({ sessionId: "s1", spaceId, agent: "writer" });
    expect(messages).toHaveLength(1);
    expect(space?.members.map(({ name }) => name)).toEqual(["local", "writer"]);
    expect((await clients.spaces.getActiveSpace({ sessionId: "s1" })).spaceId).toBe(spaceId);
    expect((await clients.spaces.leaveSpace({ sessionId: "s1" })).spaceId).toBe(spaceId);
    expect((await clients.spaces.getActiveSpace({ sessionId: "s1" })).spaceId).toBe("");
    expect((await clients.spaces.getSpace({ spaceId })).space?.members.map(({ name }) => name)).toEqual(["local"]);
  });

  test("TOOL-12 entering another space leaves the first", async () => {
    const [one, two] = [await openSpace("one", "mover"), await openSpace("two")];
    await clients.spaces.enterSpace({ sessionId: "one-mover", spaceId: two, agent: "mover" });
    expect((await clients.spaces.getSpace({ spaceId: one })).space?.members).toEqual([]);
    expect((await clients.spaces.getActiveSpace({ sessionId: "one-mover" })).spaceId).toBe(two);
  });

  test("TOOL-13 messages of many writers at once all stand in one order, and are paged from the latest", async () => {
    const spaceId = await openSpace("crowd");
    const texts = Array.from({ length: 20 }, (_, index) => `message ${index}`);
    await Promise.all(texts.map((text) => clients.spaces.sendMessage({ spaceId, text })));
    const all = await clients.spaces.listMessages({ spaceId });
    expect(all.total).toBe(20);
    const positions = all.messages.map(({ sequence }) => Number(sequence));
    expect(positions).toEqual(positions.toSorted((a, b) => a - b));
    const page = await clients.spaces.listMessages({ spaceId, offset: 5, limit: 3 });
    expect(page.messages.map(({ id }) => id)).toEqual(all.messages.slice(12, 15).map(({ id }) => id));
    expect((await said(spaceId)).toSorted()).toEqual(texts.toSorted());
  });

  test("TOOL-13 a message repeated under its id stands once, and nobody can take another's id", async () => {
    const spaceId = await openSpace("repeated");
    const message = { spaceId, text: "once", messageId: "m1" };
    await Promise.all([clients.spaces.sendMessage(message), clients.spaces.sendMessage(message)]);
    expect(await said(spaceId)).toEqual(["once"]);
    await expect(clientsOn(bus, "mallory").spaces.sendMessage(message)).rejects.toThrow(/already_exists/);
  });

  test("TOOL-13 an agent speaks only where it is", async () => {
    const spaceId = await openSpace("closed");
    const request = { spaceId, text: "hello", sessionId: "elsewhere" };
    await expect(clients.spaces.sendMessage(request)).rejects.toThrow(/session elsewhere is not in space "closed"/);
  });

  test("TOOL-13 a watch gives what stands from a sequence on and then what comes, and resumes without a gap", async () => {
    const spaceId = await openSpace("watched");
    await clients.spaces.sendMessage({ spaceId, text: "one" });
    const first = await collect(clients.spaces.watchSpace({ spaceId, fromSequence: 1n }), 2, () =>
      clients.spaces.sendMessage({ spaceId, text: "two" }),
    );
    expect(first.map(({ event }) => event.case)).toEqual(["memberJoined", "messagePosted"]);
    const next = (first.at(-1)?.sequence ?? 0n) + 1n;
    const [second] = await collect(clients.spaces.watchSpace({ spaceId, fromSequence: next }), 1);
    expect(second?.event.case === "messagePosted" && second.event.value.content.value).toMatchObject({ text: "two" });
  });

  test("TOOL-13 what is said reaches the inboxes of the other agents in the space, never the author's own", async () => {
    const spaceId = await openSpace("office", "ann", "bob");
    await clients.spaces.sendMessage({ spaceId, text: "hi bob", sessionId: "office-ann" });
    const bob = { sessionId: "office-bob", agent: "bob" };
    const events = await until(async () => {
      const { events } = await clients.inbox.listInbox(bob);
      return events.length > 0 && events;
    });
    expect(events.map(({ event }) => event.value)).toMatchObject([{ spaceId, author: "ann", text: "hi bob" }]);
    await clients.spaces.sendMessage({ spaceId, text: "a person", authorName: "Eve" });
    await until(async () => (await clients.inbox.listInbox(bob)).events.length === 2);
    const ann = await clients.inbox.listInbox({ sessionId: "office-ann", agent: "ann" });
    expect(ann.events.map(({ event }) => event.value)).toMatchObject([{ author: "Eve", text: "a person" }]);
  });

  test("TOOL-10 a shown call goes from running to complete, keeps its id and place, and reaches no inbox", async () => {
    const spaceId = await openSpace("shown", "doer", "other");
    const record = (status: ToolMessageStatus, more = {}) =>
      clients.spaces.recordToolMessage({
        spaceId,
        sessionId: "shown-doer",
        agent: "doer",
        message: { callId: "c1", tool: "ask", status, ...more },
      });
    const { message: started } = await record(ToolMessageStatus.RUNNING, { argumentsJson: "{}" });
    await clients.spaces.sendMessage({ spaceId, text: "after it" });
    await record(ToolMessageStatus.REQUIRES_ACTION);
    await record(ToolMessageStatus.REQUIRES_ACTION);
    const { message: done } = await record(ToolMessageStatus.COMPLETE, { result: { outputJson: "1" } });
    expect([done?.id, done?.sequence]).toEqual([started?.id, started?.sequence]);
    expect(done?.content.value).toMatchObject({ tool: "ask", argumentsJson: "{}", result: { outputJson: "1" } });
    const { messages } = await clients.spaces.listMessages({ spaceId });
    expect(messages.map(({ content }) => content.case)).toEqual(["tool", "text"]);
    const { message: late } = await record(ToolMessageStatus.RUNNING, { argumentsJson: "{" });
    expect(late?.content.value).toMatchObject({ status: ToolMessageStatus.COMPLETE, argumentsJson: "{}" });
    const events = await collect(clients.spaces.watchSpace({ spaceId, fromSequence: 1n }), 7);
    expect(events.map(({ event }) => event.case).filter((kind) => kind?.startsWith("tool"))).toEqual([
      "toolStarted",
      "toolRequiresAction",
      "toolDone",
    ]);
    const other = { sessionId: "shown-other", agent: "other" };
    await until(async () => (await clients.inbox.listInbox(other)).events.length === 1);
  });

  test("TOOL-7 of ten people who answer a waiting call at once, one wins, and its answer is shown", async () => {
    const spaceId = await openSpace("asked", "asker");
    const message = { callId: "q1", tool: "ask", status: ToolMessageStatus.REQUIRES_ACTION };
    await clients.spaces.recordToolMessage({ spaceId, sessionId: "asked-asker", agent: "asker", message });
    const answers = await Promise.allSettled(
      Array.from({ length: 10 }, (_, index) =>
        clients.spaces.answerToolCall({ spaceId, callId: "q1", resultJson: `${index}` }),
      ),
    );
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const { messages } = await clients.spaces.listMessages({ spaceId });
    const tool = messages[0]?.content.case === "tool" ? messages[0].content.value : undefined;
    expect(tool).toMatchObject({ status: ToolMessageStatus.COMPLETE, result: { outputJson: submissions.get("q1") } });
    await expect(clients.spaces.answerToolCall({ spaceId, callId: "q1", error: "no" })).rejects.toThrow(
      /has its answer/,
    );
    await expect(clients.spaces.answerToolCall({ spaceId, callId: "q2" })).rejects.toThrow(/shows no call q2/);
  });

  test("TOOL-9 an event is delivered once, while it waits and after it joined a run", async () => {
    const owner = { sessionId: "inbox1", agent: "writer" };
    const event = toolResult(owner, "tr:call1");
    const delivered = await Promise.all([1, 2, 3].map(() => clients.inbox.deliverEvent({ event })));
    expect(delivered.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    expect((await clients.inbox.listInbox({ ...owner, agent: "another" })).events).toEqual([]);
    const { events } = await clients.inbox.listInbox(owner);
    expect(events.map(({ eventId }) => eventId)).toEqual(["tr:call1"]);
    await clients.inbox.acknowledgeInbox({ ...owner, eventIds: ["tr:call1"] });
    await clients.inbox.acknowledgeInbox({ ...owner, eventIds: ["tr:call1"] });
    expect((await clients.inbox.listInbox(owner)).events).toEqual([]);
    expect((await clients.inbox.deliverEvent({ event })).duplicate).toBe(true);
    expect((await clients.inbox.listInbox(owner)).events).toEqual([]);
  });

  test("TOOL-9 a watch of an inbox gives what waits and then what comes", async () => {
    const owner = { sessionId: "inbox2", agent: "writer" };
    await clients.inbox.deliverEvent({ event: toolResult(owner, "tr:first") });
    const stream = clients.inbox.watchInbox(owner);
    const ids: (string | undefined)[] = [];
    for await (const { event } of stream) {
      ids.push(event?.eventId);
      if (ids.length === 2) break;
      await clients.inbox.deliverEvent({ event: toolResult({ ...owner, agent: "another" }, "tr:foreign") });
      await clients.inbox.deliverEvent({ event: toolResult(owner, "tr:second") });
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
    const { deleted } = await clients.memory.deleteEntries({ ...owner, kind: MemoryKind.GOAL, keys: ["g", "x"] });
    expect(deleted).toBe(1);
    expect((await clients.memory.listEntries({ ...owner, kind: MemoryKind.GOAL })).entries).toEqual([]);
  });

  test("KIND-2 the built-in tools are offered and called as those of any provider", async () => {
    await openSpace("tools", "reader");
    const { tools } = await clients.provider.listTools({});
    expect(tools.map(({ source, tool }) => [source, tool?.visible])).toEqual(tools.map(() => ["", false]));
    const call = async (tool: string, value: object) => {
      const request = {
        callId: `${tool}-1`,
        tool,
        argumentsJson: JSON.stringify(value),
        scope: { sessionId: "t1", agent: "bot" },
      };
      for await (const { event } of clients.provider.callTool(request)) {
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
    const iterator = clients.provider.watchTools({}, { signal: watching.signal })[Symbol.asyncIterator]();
    expect((await iterator.next()).value.tools.length).toBeGreaterThan(10);
    watching.abort();
    await expect(iterator.next()).rejects.toThrow(/canceled/);
  });

  test("BUS-4 an instance that stops ends its watches at once, and says so", async () => {
    const spaceId = await openSpace("stopped");
    const own = await openTestBus();
    await using _ = own;
    const instance = await openInstance(own, "c", stop.signal);
    const { spaces } = clientsOn(own);
    await spaces.createSpace({ spaceId });
    const iterator = spaces.watchSpace({ spaceId, fromSequence: 1n })[Symbol.asyncIterator]();
    await spaces.sendMessage({ spaceId, text: "x" });
    await iterator.next();
    const next = expect(iterator.next().then(() => iterator.next())).rejects.toThrow(/unavailable/);
    await instance[Symbol.asyncDispose]();
    await next;
  });

  test("BUS-4 what was said outlives the server, and what is said afterwards still reaches inboxes", async () => {
    await using own = await openTestBus();
    await using _ = await openInstance(own, "d", stop.signal);
    const { spaces, inbox } = clientsOn(own);
    await spaces.createSpace({ spaceId: "durable" });
    await spaces.enterSpace({ sessionId: "d1", spaceId: "durable", agent: "bot" });
    await spaces.sendMessage({ spaceId: "durable", text: "before" });
    await own.server.kill();
    await own.server.restart();
    await until(() => spaces.sendMessage({ spaceId: "durable", text: "after", messageId: "m" }).catch(() => false), {
      what: "the service to be back",
    });
    const { messages } = await spaces.listMessages({ spaceId: "durable" });
    expect(messages.map(({ content }) => content.value)).toMatchObject([{ text: "before" }, { text: "after" }]);
    expect((await spaces.getActiveSpace({ sessionId: "d1" })).spaceId).toBe("durable");
    const waiting = async () =>
      (await inbox.listInbox({ sessionId: "d1", agent: "bot" })).events.map(({ eventId }) => eventId);
    await until(async () => (await waiting()).length === 2, { timeoutMs: 15_000 });
    expect(await waiting()).toContain("msg:durable:m");
  });
});

function toolResult(owner: { sessionId: string; agent: string }, eventId: string): InboxEvent {
  const event = { case: "toolResult" as const, value: { callId: "call1", tool: "ask" } };
  return create(InboxEventSchema, {
    ...owner,
    eventId,
    event: { case: event.case, value: { $typeName: "toolbus.space.v1.InboxToolResult", ...event.value } },
  });
}

async function collect(
  stream: AsyncIterable<{ event?: SpaceEvent | undefined }>,
  count: number,
  meanwhile?: () => unknown,
) {
  const events: SpaceEvent[] = [];
  await meanwhile?.();
  for await (const { event } of stream) {
    if (event) events.push(event);
    if (events.length === count) break;
  }
  return events;
}

function clientsOn(bus: TestBus, principal?: string) {
  const interceptors: Interceptor[] = clientInterceptors({ identity: () => principal });
  return {
    spaces: clientFor(bus, SpaceService, { interceptors }),
    inbox: clientFor(bus, InboxService, { interceptors }),
    memory: clientFor(bus, MemoryService, { interceptors }),
    provider: clientFor(bus, ToolProviderService, { interceptors, room: "spaces" }),
  };
}

async function openInstance(bus: TestBus, instance: string, signal: AbortSignal) {
  const { url, user, password } = bus.server;
  const config = readConfig({ NATS_URL: url, NATS_USER: user, NATS_PASSWORD: password, TOOLBUS_INSTANCE: instance });
  const telemetry = await openTelemetry({ service: "spaces", instance });
  return openService(config, { name: "spaces", instance, logger, signal, telemetry });
}

/** The router's part in answers: the first one of a call is taken. */
async function openFakeRouter(bus: TestBus, submissions: Map<string, string>) {
  return serveOnNats(bus, {
    service: "tool-router",
    interceptors: serverInterceptors({ logger }),
    routes: (router) =>
      router.service(ToolCallService, {
        submitToolResult({ callId, resultJson }) {
          if (submissions.has(callId)) refuse("failed_precondition", `call ${callId} is resolved`);
          submissions.set(callId, resultJson);
          return create(SubmitToolResultResponseSchema, { call: { callId } });
        },
      }),
  });
}
