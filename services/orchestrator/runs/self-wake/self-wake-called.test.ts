import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { RunAcceptedSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { SessionSchema, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { createJournal } from "../../log/journal.ts";
import { entriesBackward } from "../../sessions/queue.ts";
import { createFakeInbox, inboxEvent } from "../../testing/fakes/fake-spaces.ts";
import { createMemoryKeys } from "../../testing/fakes/memory-keys.ts";
import { createMemoryRunLog } from "../../testing/fakes/memory-log.ts";
import { createMemoryQueues } from "../../testing/fakes/memory-queues.ts";
import { acceptRun } from "../create/acceptance.ts";
import { sessionOfCall } from "../sub-agents/called-session.ts";
import { type SelfWakeOptions, startFromInbox } from "./self-wake.ts";

const sessionId = sessionOfCall("call");
const { signal } = new AbortController();

function openParts() {
  const log = createMemoryRunLog();
  const queues = createMemoryQueues();
  const read: string[] = [];
  const options: SelfWakeOptions = {
    clock: systemClock,
    log: {
      ...log,
      read(runId, afterPosition) {
        read.push(runId);
        return log.read(runId, afterPosition);
      },
    },
    queues,
    wakes: { send: async () => {} },
    keys: createMemoryKeys(),
    sessions: { getSession: async (id) => create(SessionSchema, { id, agent: "a", state: SessionState.ACTIVE }) },
    agents: { getAgent: async (name) => create(AgentSchema, { name }) },
    inbox: createFakeInbox(inboxEvent({ sessionId, agent: "a", eventId: "tr:1", text: "news" })),
    logger: { warn: () => {}, error: () => {} },
    audit: () => {},
  };
  /** A run that has ended: one that a call began, or one of a client. */
  const add = async (parent?: { runId: string; depth: number }) => {
    const accepted = create(RunAcceptedSchema, { sessionId, agent: "a", ...(parent && { parent }) });
    const { runId } = await acceptRun({ ...options, log }, accepted);
    const journal = createJournal(log, runId, systemClock);
    await journal.refresh();
    await journal.append(() => ({ case: "ended", value: {} }));
  };
  const runCount = async () => (await Array.fromAsync(entriesBackward(queues, await queues.last(sessionId)))).length;
  return { options, read, add, runCount };
}

describe("a session whose run a call of another agent began", () => {
  test("LOOP-17 LOOP-12 is not woken by its inbox: nobody's limits would hold for the run", async () => {
    const { options, read, add, runCount } = openParts();
    await add({ runId: "parent", depth: 1 });
    expect(await startFromInbox(options, sessionId, signal)).toBe(false);
    await add();
    expect(await startFromInbox(options, sessionId, signal)).toBe(false);
    expect(await runCount()).toBe(2);
    expect(read, "whole logs that were read").toEqual([]);
  });

  test("LOOP-17 is not woken before that run has begun, either", async () => {
    const { options, runCount } = openParts();
    expect(await startFromInbox(options, sessionId, signal)).toBe(false);
    expect(await runCount()).toBe(0);
  });

  test("TOOL-9 one that is only named like it is woken", async () => {
    const { options, add, runCount } = openParts();
    await add();
    expect(await startFromInbox(options, sessionId, signal)).toBe(true);
    expect(await runCount()).toBe(2);
  });
});
