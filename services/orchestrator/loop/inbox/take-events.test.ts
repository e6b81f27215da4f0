import { describe, expect, test } from "vitest";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import type { InboxEvent } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { openJournal } from "../../log/journal.ts";
import type { FakeTool } from "../../testing/fakes/fake-router.ts";
import { inboxEvent } from "../../testing/fakes/fake-spaces.ts";
import { emptyInbox, openRun } from "../../testing/loop-run.ts";
import type { DeliveredInbox } from "./take-events.ts";

function event(eventId: string, text = `[Tool Result: slow] (callId: ${eventId}) 7`): InboxEvent {
  return inboxEvent({ sessionId: "s", agent: "helper", eventId, text });
}

function inboxOf(events: InboxEvent[], more: Partial<DeliveredInbox> = {}) {
  const acknowledged: string[][] = [];
  const acknowledge = async (eventIds: readonly string[]) => void acknowledged.push([...eventIds]);
  return { acknowledged, inbox: { ...emptyInbox, events, acknowledge, ...more } };
}

describe("news from the inbox", () => {
  test("TOOL-9 stand before the input of the run, are logged once and then acknowledged", async () => {
    const { inbox, acknowledged } = inboxOf([event("tr:1"), event("msg:2", '[Ada: "hello"]')]);
    const run = await openRun({ turns: [{ text: "You said {{input}}" }], context: { inbox } });
    await run.work();
    expect(run.asked[0]?.prompt.slice(1).map(({ content }) => content)).toMatchObject([
      [{ text: "[Tool Result: slow] (callId: tr:1) 7" }],
      [{ text: '[Ada: "hello"]' }],
      [{ text: "go" }],
    ]);
    expect(run.events()[2]?.event).toMatchObject({ case: "inboxTaken", value: { eventIds: ["tr:1", "msg:2"] } });
    expect(acknowledged).toEqual([["tr:1", "msg:2"]]);
    expect(await run.view()).toMatchObject({ outputText: "You said go" });
  });

  test("TOOL-9 that stood in a log when a process died are acknowledged by the next, and not taken again", async () => {
    const dying = inboxOf([event("tr:1")], {
      acknowledge: async () => {
        throw new Error("killed");
      },
    });
    const run = await openRun({ turns: [{ text: "done" }] });
    await expect(run.work("first", { inbox: dying.inbox })).rejects.toThrow("killed");
    const second = inboxOf([event("tr:1"), event("tr:later")]);
    await run.work("second", { inbox: second.inbox });
    expect(run.events().filter(({ event: { case: kind } }) => kind === "inboxTaken")).toHaveLength(1);
    expect(second.acknowledged).toEqual([["tr:1"]]);
  });

  test("TOOL-9 that joined an earlier run and were never acknowledged join no other", async () => {
    const { inbox, acknowledged } = inboxOf([event("tr:1"), event("tr:2")], { takenEventIds: new Set(["tr:1"]) });
    const run = await openRun({ turns: [{ text: "done" }], context: { inbox } });
    await run.work();
    expect(run.events()[2]?.event).toMatchObject({ value: { eventIds: ["tr:2"] } });
    expect(acknowledged).toEqual([["tr:1", "tr:2"]]);
  });

  test("TOOL-9 without room in one event stay, and one that is too long is shortened", async () => {
    const { inbox, acknowledged } = inboxOf([event("tr:1", "x".repeat(900_000)), event("tr:2")]);
    const run = await openRun({ turns: [{ text: "done" }], context: { inbox } });
    await run.work();
    expect(acknowledged).toEqual([["tr:1"]]);
    expect(JSON.stringify(run.asked[0]?.prompt)).toContain("… (900000 bytes)");
    expect(await run.view()).toMatchObject({ state: RunState.COMPLETED });
  });

  test("LOOP-13 TOOL-9 join no run that is to be canceled, which the next claim ends", async () => {
    const { inbox, acknowledged } = inboxOf([event("tr:1")]);
    const run = await openRun({ turns: [{ text: "never" }], context: { inbox } });
    const journal = await openJournal(run.log, "r", systemClock);
    await journal.append(() => ({ case: "cancelRequested", value: { principal: "", reason: "" } }));
    expect(await run.work()).toBe("ended");
    expect(await run.view()).toMatchObject({ state: RunState.CANCELED });
    expect(acknowledged).toEqual([]);
  });

  test("LOOP-1 a run that news started ends without asking the model when another run took them", async () => {
    const run = await openRun({ turns: [{ text: "never" }], accepted: { input: [], selfWakeCount: 1 } });
    await run.work();
    expect(await run.view()).toMatchObject({
      state: RunState.COMPLETED,
      endReason: RunEndReason.INBOX_EMPTY,
      selfWakeCount: 1,
    });
    expect(run.asked).toEqual([]);
  });

  test("TOOL-12 what the agent remembers stands behind its instructions", async () => {
    const inbox = { ...emptyInbox, instructions: [{ text: "Your goals:\n- win\n\n", tools: [] }] };
    const run = await openRun({ turns: [{ text: "done" }], context: { inbox } });
    await run.work();
    expect(run.asked[0]?.prompt[0]).toEqual({ role: "system", content: "Help.\n\nYour goals:\n- win" });
  });

  test("PROD-4 what is for agents with a tool that this one does not have is not told", async () => {
    const instructions = [
      { text: "You are in no space. Call enter_space.\n\n", tools: ["enter_space"] },
      { text: "Nothing to say? Call skip.", tools: ["read_messages", "skip"] },
    ];
    const skip: FakeTool = { name: "skip", tool: { executionType: ExecutionType.BUILTIN }, answer: () => null };
    const context = { inbox: { ...emptyInbox, instructions } };
    const run = await openRun({ turns: [{ text: "done" }], tools: [skip], context });
    await run.work();
    expect(run.asked[0]?.prompt[0]).toEqual({ role: "system", content: "Help.\n\nNothing to say? Call skip." });
  });
});
