import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { type ItemSchema, Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { CreateRunRequestSchema, type InputItemSchema, ToolOutputSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionSchema, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { callerNamed, SELF } from "#runtime/rpc/identity.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { createJournal, type EventBody } from "../../log/journal.ts";
import { createFakeRouter } from "../../testing/fakes/fake-router.ts";
import { createMemoryKeys } from "../../testing/fakes/memory-keys.ts";
import { createMemoryRunLog } from "../../testing/fakes/memory-log.ts";
import { createMemoryQueues } from "../../testing/fakes/memory-queues.ts";
import { type CreationOptions, createRun } from "../create/creation.ts";
import { submitOutputs } from "./answers.ts";

type Given = MessageInitShape<typeof InputItemSchema>;

const said = (text: string): Given => ({
  item: { case: "message", value: { role: Role.USER, content: textContent(text) } },
});
const called = (callId: string): MessageInitShape<typeof ItemSchema> => ({
  item: { case: "functionCall", value: { callId, name: "ask", argumentsJson: "{}" } },
});
const answered = (callId: string): Given => ({
  item: { case: "output", value: { callId, outcome: { case: "resultJson", value: "1" } } },
});

function openSession() {
  const session = create(SessionSchema, { id: "s", agent: "a", principal: "ada", state: SessionState.ACTIVE });
  const log = createMemoryRunLog();
  const options: CreationOptions = {
    runServers: "http",
    boundResult: async (result) => result,
    log,
    queues: createMemoryQueues(),
    wakes: { send: async () => {} },
    keys: createMemoryKeys(),
    agents: { getAgent: async (name) => create(AgentSchema, { name }) },
    clock: systemClock,
    router: createFakeRouter([]),
    sessions: { getSession: async () => session, createSession: async () => session },
  };
  const by = { signal: new AbortController().signal, principal: "ada", caller: callerNamed("ada") };
  const start = (request: MessageInitShape<typeof CreateRunRequestSchema>) =>
    createRun(options, create(CreateRunRequestSchema, { sessionId: "s", input: [said("go")], ...request }), by);
  const go = async (runId: string, bodies: EventBody[]) => {
    const journal = createJournal(log, runId, systemClock);
    await journal.refresh();
    for (const body of bodies) await journal.append(() => body, { epoch: body.case === "claimed" ? 1 : 0 });
  };
  return { options, start, go };
}

/** A run that has called two tools of its client, and waits. */
async function openParked() {
  const { options, start, go } = openSession();
  const { runId } = await start({ options: { functionTools: [{ name: "ask" }] } });
  const items = [called("one"), called("two")];
  await go(runId, [
    { case: "claimed", value: {} },
    { case: "turnCommitted", value: { turn: 1, items, clientCallIds: ["one", "two"] } },
    { case: "parked", value: { calls: ["one", "two"].map((callId) => ({ callId, name: "ask" })) } },
  ]);
  return { options, start, go, runId };
}

describe("a run whose input answers a call that another one of its session waits for", () => {
  test("LOOP-5 is refused by the call's name, and told which run waits for it", async () => {
    const { start, runId } = await openParked();
    await start({ input: [said("queued behind it")] });
    for (const previousRunId of ["", runId]) {
      const input = [answered("two"), said("go")];
      await expect(start({ input, previousRunId })).rejects.toMatchObject({
        code: "failed_precondition",
        reason: "CALL_AWAITED_BY_RUN",
        message: expect.stringMatching(/call two.*SubmitOutputs/),
        metadata: { call_id: "two", run_id: runId },
      });
    }
  });

  test("LOOP-5 may answer those of a run that waits no longer", async () => {
    const { options, start, go, runId } = await openParked();
    await submitOutputs(options, runId, [answeredOutput("one")], { caller: SELF });
    await expect(start({ input: [answered("one")] })).rejects.toMatchObject({ reason: "CALL_ALREADY_RESOLVED" });
    await go(runId, [{ case: "ended", value: {} }]);
    await start({ input: [answered("two"), said("go")] });
  });
});

function answeredOutput(callId: string) {
  return create(ToolOutputSchema, { callId, outcome: { case: "resultJson", value: "1" } });
}
