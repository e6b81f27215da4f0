import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { ToolChoiceMode, type ToolChoiceSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { ForkRunRequestSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionSchema, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { callerNamed } from "#runtime/rpc/identity.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { createJournal } from "../../log/journal.ts";
import { createFakeRouter } from "../../testing/fakes/fake-router.ts";
import { createMemoryKeys } from "../../testing/fakes/memory-keys.ts";
import { createMemoryRunLog } from "../../testing/fakes/memory-log.ts";
import { createMemoryQueues } from "../../testing/fakes/memory-queues.ts";
import type { CreationOptions } from "./creation.ts";
import { forkRun } from "./fork.ts";

type Choice = MessageInitShape<typeof ToolChoiceSchema>["choice"];

const by = { signal: new AbortController().signal, principal: "ada", caller: callerNamed("ada") };
const instructions = "Be brief.";

/** Forks, with one key for each point, a run whose events are accepted, claimed and one turn. */
async function openRun(choice: Choice) {
  const session = { agent: "a", principal: "ada", state: SessionState.ACTIVE };
  const options: CreationOptions = {
    runServers: "http",
    boundResult: async (result) => result,
    log: createMemoryRunLog(),
    queues: createMemoryQueues(),
    wakes: { send: async () => {} },
    keys: createMemoryKeys(),
    agents: { getAgent: async (name) => create(AgentSchema, { name }) },
    clock: systemClock,
    router: createFakeRouter([]),
    sessions: {
      getSession: async (id) => create(SessionSchema, { id, ...session }),
      createSession: async (_, { sessionId: id = "" }) => create(SessionSchema, { id, ...session }),
    },
  };
  const given = { instructions, ...(choice && { toolChoice: { choice } }) };
  const journal = createJournal(options.log, "r", systemClock);
  await journal.append(() => ({
    case: "accepted",
    value: { sessionId: "s", agent: "a", principal: "ada", options: given },
  }));
  await journal.append(() => ({ case: "claimed", value: {} }), { epoch: 1 });
  await journal.append(() => ({ case: "turnCommitted", value: { turn: 1 } }));
  return (atSequence: number) =>
    forkRun(options, create(ForkRunRequestSchema, { runId: "r", atSequence, idempotencyKey: `at ${atSequence}` }), by);
}

describe("the tool choice of a fork", () => {
  test.each<Choice>([
    { case: "mode", value: ToolChoiceMode.REQUIRED },
    { case: "forcedTool", value: "look" },
  ])(
    "LOOP-2 $value holds for the first turn only: it is left out behind that turn, and kept before it",
    async (choice) => {
      const fork = await openRun(choice);
      const before = await fork(1);
      expect(before.accepted.options).toMatchObject({ instructions, toolChoice: { choice } });
      const behind = await fork(2);
      expect(behind.accepted.options?.toolChoice).toBeUndefined();
      expect(behind.accepted.options).toMatchObject({ instructions });
      expect((await fork(2)).runId).toBe(behind.runId);
    },
  );

  test.each<Choice>([
    { case: "mode", value: ToolChoiceMode.NONE },
    { case: "mode", value: ToolChoiceMode.AUTO },
  ])("LOOP-2 $value holds for every turn, and so for a fork", async (choice) => {
    const fork = await openRun(choice);
    for (const at of [1, 2]) expect((await fork(at)).accepted.options).toMatchObject({ toolChoice: { choice } });
  });
});
