import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test, vi } from "vitest";
import { type Item, ItemSchema, Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { Carry } from "#gen/toolbus/session/v1/session_pb.ts";
import { type InboxEvent, InboxEventSchema } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { textContent, textOfContent } from "#runtime/content/text.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { createJournal, type EventBody } from "../../log/journal.ts";
import { createMemoryRunLog } from "../../testing/fakes/memory-log.ts";
import { createMemoryQueues } from "../../testing/fakes/memory-queues.ts";
import { enqueue } from "../queue.ts";
import { readHistory } from "./history.ts";
import { takenEventIds } from "./taken-events.ts";

function said(role: Role, text: string): Item {
  return create(ItemSchema, { item: { case: "message", value: { role, content: textContent(text) } } });
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
      switchCount?: number;
      carry?: Carry;
      input?: Item[];
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
      switchCount?: number;
      carry?: Carry;
      previousRunId?: string;
      sessionId?: string;
      fork?: { runId: string; atSequence: number };
      maxTokens?: number;
    } = {},
  ) {
    const { maxTokens = Number.POSITIVE_INFINITY } = run;
    const { agent = "a", switchCount = 0, carry = 0, previousRunId = "", sessionId = "s", fork } = run;
    const entry = await queues.last(sessionId);
    const own = fork && { $typeName: "toolbus.run.v1.RunFork" as const, ...fork };
    const items = await readHistory(
      queues,
      log,
      { agent, switchCount, carry, previousRunId, fork: own, before: entry },
      async () => maxTokens,
    );
    return items.map(({ item }) => (item.case === "message" ? textOfContent(item.value.content) : item.case));
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

  test("LOOP-18 lacks a run that was deleted, also where it is remembered, and says so to one that continues it", async () => {
    const { add, texts, log } = openConversation();
    for (const id of ["1", "2"]) await add(id);
    await add("3", { previousRunId: "1" });
    expect(await texts({ previousRunId: "3" })).toEqual(["1?", "1!", "3?", "3!"]);
    log.purge("1");
    using now = vi.spyOn(performance, "now");
    now.mockReturnValue(performance.timeOrigin + 61_000);
    expect(await texts({ previousRunId: "3" })).toEqual([expect.stringContaining("has been removed"), "3?", "3!"]);
    expect(await texts({ previousRunId: "2" })).toEqual(["2?", "2!"]);
  });

  describe("ORCH-1 behind a switch", () => {
    const { MESSAGES, NOTHING } = Carry;
    const calls = [create(ItemSchema, { item: { case: "functionCall", value: { callId: "c", name: "t" } } })];
    const called: EventBody = { case: "turnCommitted", value: { turn: 2, items: calls } };
    const answered: EventBody = { case: "callFinished", value: { callId: "c", result: { outputJson: "1" } } };
    const b = { agent: "b", switchCount: 1 };

    test("is what users and agents said, the other agent's words told as that", async () => {
      const { add, texts } = openConversation();
      await add("1", {}, [called, answered]);
      await add("2", { ...b, carry: MESSAGES }, [called, answered]);
      expect(await texts({ ...b, carry: MESSAGES }), "its own calls are shown").toEqual([
        ...["1?", "[Agent a said]\n1!"],
        ...["2?", "2!", "functionCall", "functionCallOutput"],
      ]);
    });

    test("is neither thoughts nor instructions, news of the inbox, answers to calls or summaries of them", async () => {
      const { add, texts } = openConversation();
      const output = create(ItemSchema, {
        item: { case: "functionCallOutput", value: { callId: "c", result: { outputJson: "1" } } },
      });
      const thought = create(ItemSchema, { item: { case: "reasoning", value: { text: "secret" } } });
      await add("0");
      await add(
        "1",
        { input: [said(Role.SYSTEM, "obey"), output, said(Role.USER, "1?"), said(Role.ASSISTANT, "so")] },
        [
          { case: "inboxTaken", value: { eventIds: ["tr:1"], items: [said(Role.USER, "[Tool Result: t]")] } },
          { case: "contextCompacted", value: { beforeSequence: 4, summary: "of results" } },
          { case: "turnCommitted", value: { turn: 2, items: [thought, said(Role.ASSISTANT, " ")] } },
        ],
      );
      expect(await texts({ ...b, carry: MESSAGES })).toEqual([
        ...["0?", "[Agent a said]\n0!"],
        ...["1?", "[Agent a said]\nso", "[Agent a said]\n1!"],
      ]);
    });

    test("is nothing where the switch carried nothing, until the next one", async () => {
      const { add, texts } = openConversation();
      await add("1");
      await add("2", { ...b, carry: NOTHING });
      await add("3", { ...b, carry: NOTHING, previousRunId: "2" });
      expect(await texts({ ...b, carry: NOTHING })).toEqual(["2?", "2!", "3?", "3!"]);
      expect(await texts({ agent: "c", switchCount: 2, carry: NOTHING })).toEqual([]);
      expect(await texts({ agent: "c", switchCount: 2, carry: MESSAGES })).toEqual(
        ["a", "b", "b"].flatMap((agent, index) => [`${index + 1}?`, `[Agent ${agent} said]\n${index + 1}!`]),
      );
    });

    test("is what was said for an agent that comes back, too: its own words are its own, its calls are gone", async () => {
      const { add, texts } = openConversation();
      await add("1", {}, [called, answered]);
      await add("2", { ...b, carry: NOTHING });
      const back = { agent: "a", switchCount: 2, carry: MESSAGES };
      expect(await texts(back)).toEqual(["1?", "1!", "2?", "[Agent b said]\n2!"]);
    });

    test("ends at the run that is continued", async () => {
      const { add, texts } = openConversation();
      for (const id of ["1", "2"]) await add(id);
      const asked = { ...b, carry: MESSAGES, previousRunId: "1" };
      expect(await texts(asked)).toEqual(["1?", "[Agent a said]\n1!"]);
      await add("3", asked);
      expect(await texts({ ...b, carry: MESSAGES })).toEqual(["1?", "[Agent a said]\n1!", "3?", "3!"]);
    });

    test("is the same to a fork as to the run at whose point it stands", async () => {
      const { add, texts } = openConversation();
      await add("1", {}, [called, answered]);
      await add("2", { ...b, carry: NOTHING }, [called, answered]);
      await add("3", { agent: "a", switchCount: 2, carry: MESSAGES });
      const calling = ["functionCall", "functionCallOutput"];
      const inT = { sessionId: "t", agent: "b" };
      expect(await texts({ ...inT, fork: { runId: "2", atSequence: 9 } })).toEqual(["2?", "2!", ...calling]);
      const ofBack = ["1?", "1!", "2?", "[Agent b said]\n2!", "3?", "3!"];
      expect(await texts({ ...inT, agent: "a", fork: { runId: "3", atSequence: 9 } })).toEqual(ofBack);
      await add("f", { ...inT, fork: { runId: "2", atSequence: 9 } });
      expect(await texts({ ...inT, agent: "a", switchCount: 1, carry: NOTHING })).toEqual([]);
      const switched = { ...inT, agent: "a", switchCount: 1, carry: MESSAGES };
      expect(await texts(switched)).toEqual(["2?", "[Agent b said]\n2!", "f?", "[Agent b said]\nf!"]);
    });

    test("has the runs of before and after a switch that was taken back alike", async () => {
      const { add, texts } = openConversation();
      const a = { agent: "a", switchCount: 1, carry: NOTHING };
      await add("1", a, [called, answered]);
      await add("2", { agent: "b", switchCount: 2, carry: MESSAGES });
      expect(await texts(a)).toEqual(["1?", "1!", "functionCall", "functionCallOutput"]);
    });
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
    await add("1", {}, [{ case: "textCheckpoint", value: { turn: 2, attempt: 1, deltaCount: 1, text: "and so" } }]);
    expect(await texts()).toEqual(["1?", "1!", "and so"]);
  });
});
