import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AgentSchema, SubAgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { ExecuteToolRequestSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { SessionSchema } from "#gen/toolbus/session/v1/session_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { createFakeRouter } from "../../testing/fakes/fake-router.ts";
import { createFakeToolMessages } from "../../testing/fakes/fake-tool-messages.ts";
import { createMemoryKeys } from "../../testing/fakes/memory-keys.ts";
import { createMemoryRunLog } from "../../testing/fakes/memory-log.ts";
import { createMemoryQueues } from "../../testing/fakes/memory-queues.ts";
import { startSubAgent } from "./call.ts";
import { cancelingSubAgents } from "./cancel.ts";

const { signal } = new AbortController();

function openCalls() {
  const subAgents = ["helper", "other"].map((agent) => create(SubAgentSchema, { agent }));
  const options = {
    log: createMemoryRunLog(),
    queues: createMemoryQueues(),
    wakes: { send: async () => {} },
    keys: createMemoryKeys(),
    clock: systemClock,
    agents: { getAgent: async (name: string) => create(AgentSchema, { name, subAgents }) },
    sessions: {
      createSession: async (agent: string, { sessionId = "" }) => create(SessionSchema, { id: sessionId, agent }),
    },
  };
  const call = async (principal: string, tool: string, argumentsJson: string) => {
    const scope = { sessionId: `of-${principal}`, agent: "boss", principal };
    const request = create(ExecuteToolRequestSchema, { callId: "1", tool, argumentsJson, scope });
    const started = await startSubAgent(options, request, signal);
    return started.kind === "run" ? started.runId : started.kind;
  };
  return { options, call };
}

test.each([
  ["another principal's", "bob", "agent_helper", '{"input":"what ada asked"}'],
  ["of another agent", "ada", "agent_other", '{"input":"what ada asked"}'],
  ["with another input", "ada", "agent_helper", '{"input":"something else"}'],
])("LOOP-17 SEC-1 a call that is %s, under the id of an earlier one, gets nothing of its run", async (_, ...asked) => {
  const { call } = openCalls();
  const first = await call("ada", "agent_helper", '{"input":"what ada asked"}');
  expect(await call("ada", "agent_helper", '{ "input": "what ada asked" }')).toBe(first);
  await expect(call(...asked)).rejects.toMatchObject({ code: "already_exists", reason: "CALL_ID_REUSED" });
});

test("LOOP-17 LOOP-15 a call that is canceled takes its run along, also while no router answers", async () => {
  const { options, call } = openCalls();
  const runId = await call("ada", "agent_helper", '{"input":"go"}');
  const away = new Failure("unavailable", "no router", { reason: "SERVICE_UNAVAILABLE" });
  const router = { ...createFakeRouter([]), cancelToolCall: () => Promise.reject(away) };
  const others = { notify: () => {}, toolMessages: createFakeToolMessages(), onNotShown: () => {} };
  const { cancelToolCall } = cancelingSubAgents(router, { ...options, ...others });
  await expect(cancelToolCall({ callId: "1", reason: "enough" }, { signal, principal: "ada" })).rejects.toBe(away);
  expect(options.log.events(runId).map(({ event }) => event.case)).toEqual(["accepted", "cancelRequested", "ended"]);
});
