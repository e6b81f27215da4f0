// What the release 0.2.0 stored, in this one. The store is the folder `nats/store` of its `toolbus up`, stopped in good order, without what
// the server removes by age.

import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCatalogService } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { until } from "#runtime/time/until.ts";
import { openTestSuite } from "../../harness/suite.ts";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

it("BUS-4 reads the agents, tools, runs and spaces that the last release stored, and ends its parked run", async () => {
  await using suite = await openTestSuite({
    left: at("store-0.2.0.tar.gz"),
    env: { TOOLBUS_SCRIPTS: at("../../system/fixtures/runs"), TOOLBUS_RUN_RETENTION: "876000h" },
  });
  const { client } = suite.connection;
  const [runs, spaces] = [client(RunService), client(SpaceService)];
  const { agents } = await client(AgentService).listAgents({});
  const { tools } = await client(ToolCatalogService).listCatalogTools({});
  expect(agents.map(({ agent }) => agent?.name)).toEqual(expect.arrayContaining(["asking", "helper"]));
  expect(tools.map(({ tool }) => tool?.name)).toContain("weigh");

  const input = [{ item: { case: "message" as const, value: { role: Role.USER, content: textContent("care") } } }];
  const { run: helped } = await runs.createRun({ agent: "helper", input, idempotencyKey: "once" });
  expect(helped).toMatchObject({ state: RunState.COMPLETED, outputText: "done with care" });
  const sessionId = helped?.sessionId ?? "";
  const { run: next } = await runs.createRun({ sessionId, input });
  const { messages } = await spaces.listMessages({ spaceId: "lounge" });
  expect(JSON.stringify(messages.map(({ content }) => content.value))).toContain("a word of before");

  const [parked] = (await runs.listRuns({ agent: "asking" })).runs;
  const runId = parked?.id ?? "";
  await runs.submitOutputs({ runId, outputs: [{ callId: "call_1_1", outcome: { case: "resultJson", value: "7" } }] });
  const textOf = async (id: string) => (await runs.getRun({ runId: id })).run?.outputText;
  await until(async () => (await textOf(runId)) === "It is 7.", { timeoutMs: 30_000, what: "the parked run to end" });
  await until(async () => (await textOf(next?.id ?? "")) === "done with care", { timeoutMs: 30_000 });
}, 120_000);
