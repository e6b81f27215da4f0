import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MemoryKind } from "#gen/toolbus/space/v1/memory_pb.ts";
import { ToolMessageState } from "#gen/toolbus/space/v1/space_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import type { ChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { openSpacesProcess } from "./spaces-process.ts";
import { clientsOn, openFakeRouter, toolResult } from "./test-spaces.ts";

/** Of each lane; an inbox holds 1,000 events. */
const mostMessages = 300;
const patient = { timeoutMs: 60_000, intervalMs: 20 };

describe("instances that are killed", () => {
  const stack = new AsyncDisposableStack();
  let bus: TestBus;
  let clients: ReturnType<typeof clientsOn>;
  let processes: ChildProcess[] = [];
  let kills = 0;

  beforeAll(async () => {
    bus = stack.use(await openTestBus());
    stack.use(await openFakeRouter(bus, { submissions: new Map(), sessions: new Map(), spacesByCall: new Map() }));
    stack.defer(() => Promise.all(processes.map((process) => process.kill())).then(() => {}));
    processes = await Promise.all([openSpacesProcess(bus, "p0"), openSpacesProcess(bus, "p1")]);
    clients = clientsOn(bus);
  }, 60_000);
  afterAll(() => stack.disposeAsync());

  /** Kills one and starts another in its place, while the other one lives. */
  const killOne = async () => {
    const [doomed, survivor] = processes as [ChildProcess, ChildProcess];
    await doomed.kill();
    processes = [survivor];
    processes.push(await openSpacesProcess(bus, `p${2 + kills++}`));
  };

  /** Until it is answered; what was lost on the way is asked again under the same id. */
  const untilAnswered = <T extends object>(ask: () => Promise<T>) => until(() => ask().catch(() => undefined), patient);

  test("TOOL-13 while instances die, each message stands once, watches miss and repeat nothing, each inbox gets it once", async () => {
    const spaceId = "rough";
    await clients.spaces.createSpace({ spaceId });
    for (const agent of ["ann", "bob"]) {
      await untilAnswered(() =>
        clients.spaces.enterSpace({
          spaceId,
          member: { case: "agent", value: { sessionId: `rough-${agent}`, agent } },
        }),
      );
    }
    const seen: string[] = [];
    let next = 0n;
    const watching = new AbortController();
    const watch = async () => {
      while (!watching.signal.aborted) {
        try {
          for await (const answer of clients.spaces.watchSpace({ spaceId, fromSequence: next }, watching)) {
            if (answer.update.case !== "event") throw new Error(`told ${answer.update.case}`);
            const { sequence, event } = answer.update.value;
            next = sequence + 1n;
            if (event.case === "messagePosted") seen.push(event.value.id);
          }
        } catch {
          await delay(20, watching.signal).catch(() => {}); // its instance died: the next one goes on from there
        }
      }
    };
    const watched = watch();
    const ids: string[] = [];
    let isKilling = true;
    const send = async (lane: number) => {
      for (let index = 0; index < 30 || (isKilling && index < mostMessages); index++) {
        const id = `m${lane}-${index}`;
        ids.push(id);
        await untilAnswered(() =>
          clients.spaces.sendMessage({
            spaceId,
            content: textContent(id),
            author: { case: "personName", value: "Eve" },
            messageId: id,
          }),
        );
      }
    };
    const sending = Promise.all([0, 1].map(send));
    for (let kill = 0; kill < 3; kill++) await killOne();
    isKilling = false;
    await sending;

    const pages = await allPages((pageToken) =>
      untilAnswered(() => clients.spaces.listMessages({ spaceId, pageToken })),
    );
    const stand = pages.flatMap(({ messages }) => messages.map(({ id }) => id)).reverse();
    expect(stand.toSorted()).toEqual(ids.toSorted());
    await until(() => seen.length >= ids.length, patient);
    expect(seen).toEqual(stand);
    watching.abort();
    await watched;
    for (const agent of ["ann", "bob"]) {
      const owner = { sessionId: `rough-${agent}`, agent };
      const page = (pageToken: string) => clients.inbox.listInboxEvents({ ...owner, pageToken });
      const list = async () => (await allPages(page)).flatMap((one) => one.events);
      const events = await until(async () => {
        const events = await list().catch(() => []);
        return events.length >= ids.length && events;
      }, patient);
      expect(events.map(({ eventId }) => eventId).toSorted()).toEqual(ids.map((id) => `msg:rough:${id}`).toSorted());
    }
  }, 180_000);

  test("TOOL-9 while instances die, an event that is delivered again and again, and acknowledged, is taken once", async () => {
    const owner = { sessionId: "news", agent: "reader" };
    const ids = Array.from({ length: 40 }, (_, index) => `tr:${index}`);
    const deliver = async (lane: number) => {
      for (const id of ids) {
        if (lane < 2 || id.endsWith("0"))
          await untilAnswered(() => clients.delivery.deliverEvent({ event: toolResult(owner, id) }));
      }
    };
    const delivering = Promise.all([0, 1, 2].map(deliver));
    const taken: string[] = [];
    const take = async () => {
      while (taken.length < ids.length) {
        const { events } = await untilAnswered(() => clients.inbox.listInboxEvents(owner));
        const fresh = events.map(({ eventId }) => eventId).filter((id) => !taken.includes(id));
        taken.push(...fresh); // as a run's log holds them before they are acknowledged
        await untilAnswered(() => clients.delivery.acknowledgeInbox({ ...owner, eventIds: taken }));
      }
    };
    await Promise.all([take(), killOne()]);
    await delivering;
    expect(taken.toSorted()).toEqual(ids.toSorted());
    expect((await untilAnswered(() => clients.inbox.listInboxEvents(owner))).events).toEqual([]);
  }, 120_000);

  test("TOOL-12 a plan whose time comes while no instance lives wakes its agent when one is back, once", async () => {
    const owner = { sessionId: "asleep", agent: "planner" };
    const dueMs = Date.now() + 3_000;
    const dueAt = { seconds: BigInt(Math.ceil(dueMs / 1_000)), nanos: 0 };
    const entries = ["kept", "dropped"].map((key) => ({ kind: MemoryKind.PLAN, key, text: key, dueTime: dueAt }));
    await untilAnswered(() => clients.memory.setEntries({ ...owner, entries }));
    await untilAnswered(() => clients.memory.deleteEntries({ ...owner, kind: MemoryKind.PLAN, keys: ["dropped"] }));
    await Promise.all(processes.map((process) => process.kill()));
    await until(() => Date.now() > Number(dueAt.seconds) * 1_000, patient);
    processes = await Promise.all([openSpacesProcess(bus, "late0"), openSpacesProcess(bus, "late1")]);
    const events = await until(async () => {
      const { events } = await untilAnswered(() => clients.inbox.listInboxEvents(owner));
      return events.length > 0 && events;
    }, patient);
    expect(events.map(({ text }) => text)).toEqual(['[Plan: kept] "kept"']);
  }, 120_000);

  test("TOOL-10 while instances die, a shown call goes its way once, whoever tells it and however often", async () => {
    const spaceId = "shown";
    await untilAnswered(() => clients.spaces.createSpace({ spaceId }));
    const states = [ToolMessageState.RUNNING, ToolMessageState.REQUIRES_ACTION, ToolMessageState.COMPLETE];
    const tell = async (callId: string) => {
      for (const state of states) {
        const message = { callId, tool: "ask", state, argumentsJson: "{}" };
        const request = { spaceId, sessionId: "shown", agent: "a", message };
        await Promise.all([1, 2].map(() => untilAnswered(() => clients.toolMessages.recordToolMessage(request))));
      }
    };
    const ids = Array.from({ length: 12 }, (_, index) => `c${index}`);
    await Promise.all([Promise.all(ids.map(tell)), killOne()]);
    const kindsByCall = new Map<string, string[]>(ids.map((id) => [`tool:${id}`, []]));
    let count = 0;
    for await (const { update } of clients.spaces.watchSpace({ spaceId, fromSequence: 0n })) {
      const event = update.case === "event" ? update.value : undefined;
      if (event?.event.case?.startsWith("tool") && "id" in event.event.value) {
        kindsByCall.get(event.event.value.id)?.push(event.event.case);
        if (++count === ids.length * states.length) break;
      }
    }
    for (const kinds of kindsByCall.values()) expect(kinds).toEqual(["toolStarted", "toolRequiresAction", "toolDone"]);
  }, 120_000);
});
