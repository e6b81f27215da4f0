import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { AgentSchema, SubAgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { ExecuteToolRequestSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { RunAcceptedSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { SessionSchema } from "#gen/toolbus/session/v1/session_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { createFakeRouter } from "../../testing/fakes/fake-router.ts";
import { createFakeToolMessages } from "../../testing/fakes/fake-tool-messages.ts";
import { createMemoryKeys } from "../../testing/fakes/memory-keys.ts";
import { createMemoryRunLog } from "../../testing/fakes/memory-log.ts";
import { createMemoryQueues } from "../../testing/fakes/memory-queues.ts";
import { acceptRun } from "../create/acceptance.ts";
import { type SubAgentOptions, startSubAgent } from "./call.ts";
import { sessionOfCall } from "./called-session.ts";
import { cancelingSubAgents } from "./cancel.ts";

const { signal } = new AbortController();
const callId = "call_of_parent";
const sessionId = sessionOfCall(callId);

function openOptions() {
  const log = createMemoryRunLog();
  const subAgents = [create(SubAgentSchema, { agent: "helper" })];
  const options: SubAgentOptions = {
    log,
    queues: createMemoryQueues(),
    wakes: { send: async () => {} },
    keys: createMemoryKeys(),
    clock: systemClock,
    agents: { getAgent: async (name) => create(AgentSchema, { name, subAgents }) },
    sessions: { createSession: async (agent, { sessionId: id = "" }) => create(SessionSchema, { id, agent }) },
  };
  const scope = { sessionId: "boss-1", agent: "boss", principal: "ada" };
  const request = create(ExecuteToolRequestSchema, {
    callId,
    tool: "agent_helper",
    argumentsJson: '{"input":"x"}',
    scope,
  });
  const call = async () => {
    const started = await startSubAgent(options, request, signal);
    return started.kind === "run" ? started.runId : "";
  };
  const addLater = async () =>
    (await acceptRun(options, create(RunAcceptedSchema, { sessionId, agent: "helper", principal: "ada" }))).runId;
  const kinds = (runId: string) => log.events(runId).map(({ event }) => event.case);
  return { options, call, addLater, kinds };
}

describe("a run that joins the session of an agent that was called", () => {
  test("LOOP-17 LOOP-13 does not stand for the run of the call, which is found by its call", async () => {
    const { call, addLater } = openOptions();
    const called = await call();
    expect(await addLater()).not.toBe(called);
    expect(await call()).toBe(called);
  });

  test("LOOP-17 LOOP-15 is not canceled with the call, whose own run is", async () => {
    const { options, call, addLater, kinds } = openOptions();
    const called = await call();
    const later = await addLater();
    const parts = { ...options, notify: () => {}, toolMessages: createFakeToolMessages(), onNotShown: () => {} };
    const router = cancelingSubAgents(createFakeRouter([]), parts);
    await router.cancelToolCall({ callId, reason: "enough" }, { signal, principal: "ada" });
    expect(kinds(called)).toEqual(["accepted", "cancelRequested", "ended"]);
    expect(kinds(later)).toEqual(["accepted"]);
  });
});
