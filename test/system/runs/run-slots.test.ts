// An orchestrator that works on one session at a time.

import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { until } from "#runtime/time/until.ts";
import { openTestSuite } from "../../harness/suite.ts";

const scripts = fileURLToPath(new URL("../fixtures/runs", import.meta.url));

it("LOOP-17 runs that wait for their sub-agents leave their slots to them", async () => {
  await using suite = await openTestSuite({ env: { TOOLBUS_SCRIPTS: scripts, TOOLBUS_RUN_SLOTS: "1" } });
  const [agents, runs] = [suite.connection.client(AgentService), suite.connection.client(RunService)];
  const model = (name: string) => ({ provider: "scripted", model: name });
  await agents.applyAgent({ agent: { name: "helper", model: model("helper") } });
  const boss = { name: "boss", model: model("boss"), tools: { use: ["agent_*"] }, subAgents: [{ agent: "helper" }] };
  await agents.applyAgent({ agent: boss });
  const message = { role: Role.USER, content: textContent("go") };
  const input = [{ item: { case: "message", value: message } } as const];
  const started = await Promise.all([1, 2, 3].map(() => runs.createRun({ agent: "boss", input })));
  for (const { run } of started) {
    const hasCompleted = async () => (await runs.getRun({ runId: run?.id ?? "" })).run?.state === RunState.COMPLETED;
    await until(hasCompleted, { timeoutMs: 30_000, what: "the run to complete" });
  }
  const { runs: all } = await runs.listRuns({ pageSize: 100 });
  expect(all.filter(({ parent }) => parent !== undefined)).toHaveLength(3);
});
