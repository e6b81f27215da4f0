import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { type Item, ItemSchema, Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { type InboxEvent, InboxEventSchema } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { createJournal, type EventBody } from "../run/journal.ts";
import { createMemoryRunLog } from "../run/memory-log.fixture.ts";
import { readHistory } from "./history.ts";
import { createMemoryQueues } from "./memory-queues.fixture.ts";
import { enqueue } from "./queue.ts";
import { takenEventIds } from "./taken-events.ts";

function said(role: Role, text: string): Item {
  return create(ItemSchema, { item: { case: "message", value: { role, text } } });
}

function openConversation() {
  const log = createMemoryRunLog();
  const queues = createMemoryQueues();

  /** A run that was asked `<id>?` and answered `<id>!`, with what else stands in its log before the end. */
  async function add(
    runId: string,
    accepted: {
      sessionId?: string;
      agent?: string;
      previousRunId?: string;
      fork?: { runId: string; atSequence: number };
    } = {},
    events: EventBody[] = [],
  ) {
    const journal = createJournal(log, runId, systemClock);
    const { sessionId = "s" } = accepted;
    const input = [said(Role.USER, `${runId}?`)];
    await journal.append(() => ({ case: "accepted", value: { sessionId, agent: "a", input, ...accepted } }));
    await enqueue(queues, { sessionId, runId, acceptedPosition: journal.position });
    const items = [said(Role.ASSISTANT, `${runId}!`)];
    const rest: EventBody[] = [
      { case: "turnCommitted", value: { turn: 1, items } },
      ...events,
      { case: "ended", value: { state: RunState.COMPLETED } },
    ];
    for (const event of rest) await journal.append(() => event, { epoch: event.case === "claimed" ? 1 : 0 });
  }

  /** What a further run would continue. */
  async function before(
    run: {
      agent?: string;
      previousRunId?: string;
      sessionId?: string;
      fork?: { runId: string; atSequence: number };
      maxTokens?: number;
    } = {},
  ) {
    const { maxTokens = Number.POSITIVE_INFINITY } = run;
    const { agent = "a", previousRunId = "", sessionId = "s", fork } = run;
    const entry = await queues.last(sessionId);
    const own = fork && { $typeName: "toolbus.run.v1.RunFork" as const, ...fork };
    const items = await readHistory(
      queues,
      log,
      { agent, previousRunId, fork: own, before: entry },
      async () => maxTokens,
    );
    return items.flatMap(({ item }) => (item.case === "message" ? [item.value.text] : []));
  }

  const taken = async (events: InboxEvent[]) =>
    [...(await takenEventIds(queues, log, await queues.last("s"), events))].sort();

  return { add, texts: before, taken, log };
}

describe("the conversation before a run", () => {
  test("LOOP-1 is all runs of the session, in order", async () => {
    const { add, texts } = openConversation();
    for (const id of ["1", "2"]) await add(id);
    expect(await texts()).toEqual(["1?", "1!", "2?", "2!"]);
  });

  test("LOOP-18 goes on from the run that was named, without those after it", async () => {
    const { add, texts } = openConversation();
    for (const id of ["1", "2", "3"]) await add(id);
    await add("4", { previousRunId: "2" });
    expect(await texts({ previousRunId: "2" })).toEqual(["1?", "1!", "2?", "2!"]);
    expect(await texts()).toEqual(["1?", "1!", "2?", "2!", "4?", "4!"]);
  });

  test("ORCH-1 shows nothing of a former agent, and the agent's own again when it comes back", async () => {
    const { add, texts } = openConversation();
    await add("1");
    await add("2", { agent: "b" });
    await add("3");
    expect(await texts()).toEqual(["1?", "1!", "3?", "3!"]);
    expect(await texts({ agent: "b" })).toEqual(["2?", "2!"]);
    expect(await texts({ agent: "c" })).toEqual([]);
  });

  test("LOOP-1 begins with the summary where a run has one: what is before it is in it", async () => {
    const { add, texts } = openConversation();
    await add("1");
    await add("2", {}, [{ case: "contextCompacted", value: { beforeSequence: 3, summary: "of all" } }]);
    await add("3");
    expect(await texts()).toEqual(["[Summary of the conversation so far]\nof all", "2?", "3?", "3!"]);
  });

  test("LOOP-13 of a fork is that of the other run up to the point, in any session", async () => {
    const { add, texts } = openConversation();
    await add("1");
    await add("2");
    expect(await texts({ sessionId: "t", fork: { runId: "2", atSequence: 0 } })).toEqual(["1?", "1!", "2?"]);
    expect(await texts({ sessionId: "t", fork: { runId: "2", atSequence: 1 } })).toEqual(["1?", "1!", "2?", "2!"]);
    await add("f", { sessionId: "t", fork: { runId: "1", atSequence: 1 } });
    await add("g", { sessionId: "t" });
    expect(await texts({ sessionId: "t" })).toEqual(["1?", "1!", "f?", "f!", "g?", "g!"]);
    expect(await texts({ sessionId: "u", fork: { runId: "g", atSequence: 0 } })).toEqual([
      "1?",
      "1!",
      "f?",
      "f!",
      "g?",
    ]);
  });

  test("LOOP-13 of a fork says so where the other run has been removed", async () => {
    const { texts } = openConversation();
    expect(await texts({ sessionId: "t", fork: { runId: "gone", atSequence: 3 } })).toEqual([
      "[What was said before, in run gone, has been removed]",
    ]);
  });

  test("TOOL-9 tells which news joined one of its runs, those of other agents too", async () => {
    const { add, taken: takenOf } = openConversation();
    const taken = (id: string): EventBody => ({
      case: "inboxTaken",
      value: { eventIds: [id], items: [said(Role.USER, id)] },
    });
    const claimed: EventBody = { case: "claimed", value: {} };
    await add("1", {}, [claimed, taken("tr:1")]);
    await add("2", { agent: "b" }, [claimed, taken("tr:2")]);
    await add("3", {}, [claimed, { case: "contextCompacted", value: { beforeSequence: 4, summary: "of all" } }]);
    await add("4", { previousRunId: "3" }, [claimed]);
    const atMs = (ms: number) => create(InboxEventSchema, { eventId: "x", createTime: timestampFromMs(ms) });
    expect(await takenOf([atMs(Date.now())])).toEqual(["tr:1", "tr:2"]);
    expect(await takenOf([])).toEqual([]);
    expect(await takenOf([atMs(Date.now() + 600_000)]), "all were over by then").toEqual([]);
  });

  test("LOOP-1 goes back as far as there is room, and says that it began earlier", async () => {
    const { add, texts } = openConversation();
    for (const id of ["1", "2", "3"]) await add(id);
    expect(await texts({ maxTokens: 10 })).toEqual([
      "[What was said before, up to run 2, is too long to be shown]",
      "3?",
      "3!",
    ]);
    expect(await texts({ maxTokens: 1_000 })).toEqual(["1?", "1!", "2?", "2!", "3?", "3!"]);
  });

  test("LOOP-1 reads the log of a run that has ended once", async () => {
    const { add, texts, log } = openConversation();
    const ids = Array.from({ length: 20 }, (_, index) => `${index}`);
    for (const id of ids) await add(id, id === "7" ? { previousRunId: "6" } : {});
    const read = log.read.bind(log);
    const asked: string[] = [];
    log.read = (runId, after) => {
      asked.push(runId);
      return read(runId, after);
    };
    const all = ids.flatMap((id) => [`${id}?`, `${id}!`]);
    expect(await texts()).toEqual(all);
    expect(asked.sort()).toEqual(ids.sort());
    expect(await texts()).toEqual(all);
    expect(asked).toHaveLength(20);
  });

  test("LOOP-10 has what a run said in the middle of which it ended", async () => {
    const { add, texts } = openConversation();
    await add("1", {}, [{ case: "textCheckpoint", value: { turn: 2, attempt: 1, deltas: 1, text: "and so" } }]);
    expect(await texts()).toEqual(["1?", "1!", "and so"]);
  });
});
