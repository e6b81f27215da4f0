// A caller that is there and does not answer, for the whole time that a caller has, through each service on the way.

import { fileURLToPath } from "node:url";
import { toJsonString } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { Role, RunSchema, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { until } from "#runtime/time/until.ts";
import { openTestSuite } from "../../harness/suite.ts";

const scripts = fileURLToPath(new URL("../fixtures/runs", import.meta.url));
const timeMs = 60_000;

it("CTR-6 no hop gives up before the caller's 60 s are over: neither for a call nor for an agent's", async () => {
  const services = ["gateway", "orchestrator", "tool-router", "caller-relay", "spaces"];
  await using suite = await openTestSuite({ services, env: { TOOLBUS_SCRIPTS: scripts } });
  const { client } = suite.connection;
  const sessionId = "patient";
  const agent = { name: "asking", model: { provider: "scripted", model: "asking.json" } };
  await client(AgentService).applyAgent({ agent });
  await client(SessionService).createSession({ sessionId, agent: "asking" });
  const declaration = { callerId: "app", tools: [{ name: "wait" }] };
  await client(CallerService).declareTools({ sessionId, declaration });
  const leaving = new AbortController();
  const requests: string[] = [];
  const attached = (async () => {
    for await (const { event } of client(CallerService).watchCaller({ sessionId }, { signal: leaving.signal }))
      if (event.case === "request") requests.push(event.value.requestId);
  })().catch(() => undefined);
  const isAttached = async () => (await client(CallerService).getDeclaration({ sessionId })).attached;
  await until(isAttached, { what: "the caller to be attached" });

  const startedAt = performance.now();
  const calling = (async () => {
    for await (const { event } of client(ToolService).callTool({ sessionId, name: "app_wait", argumentsJson: "{}" }))
      if (event.case === "result") return { ...event.value, tookMs: performance.now() - startedAt };
    throw new Error("the call ended without a result");
  })();
  const { run } = await client(RunService).createRun({
    sessionId,
    input: [{ item: { case: "message", value: { role: Role.USER, content: textContent("ask") } } }],
  });
  const ended = await until(
    async () => {
      const { run: now } = await client(RunService).getRun({ runId: run?.id ?? "" });
      return now?.state === RunState.COMPLETED ? now : undefined;
    },
    { timeoutMs: 2 * timeMs, what: "the run to end" },
  );
  const runTookMs = performance.now() - startedAt;
  const { isError, outputJson, tookMs } = await calling;
  expect([isError, JSON.parse(outputJson)]).toEqual([
    true,
    { error: expect.stringMatching(/"app_wait".*60000 ?ms|60000 ?ms.*"app_wait"/) },
  ]);
  expect(requests).toHaveLength(2);
  for (const ms of [tookMs, runTookMs]) {
    expect(ms).toBeGreaterThan(timeMs - 100);
    expect(ms).toBeLessThan(timeMs + 15_000);
  }
  expect(toJsonString(RunSchema, ended)).toContain("60000");
  leaving.abort();
  await attached;
}, 180_000);
