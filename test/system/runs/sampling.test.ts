// Texts that MCP servers have written by the agent's model (MCP's sampling), with every service as a process.

import { fileURLToPath } from "node:url";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { LimitsSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { Role, RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { until } from "#runtime/time/until.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";
import { openAskingServer } from "../fixtures/asking/modern-server.ts";

const fixtures = fileURLToPath(new URL("../fixtures/asking", import.meta.url));

const stack = new AsyncDisposableStack();
let suite: TestSuite;
beforeAll(async () => {
  suite = stack.use(await openTestSuite({ isolate: true, env: { TOOLBUS_SCRIPTS: fixtures } }));
  const modern = stack.use(await openAskingServer());
  const old = { command: process.execPath, args: [`${fixtures}/old-server.ts`] };
  const sources = [
    { name: "old", provider: "mcp", config: { ...old, sampling: true } },
    { name: "new", provider: "mcp", config: { url: modern.url, sampling: true } },
    { name: "plain", provider: "mcp", config: old },
  ];
  for (const name of ["writer", "brief", "many"]) {
    const model = { provider: "scripted", model: name };
    const agent = { name, model, tools: { use: ["@old/*", "@new/*", "@plain/*"] }, sources };
    await suite.connection.client(AgentService).applyAgent({ agent });
  }
});
afterAll(() => stack.disposeAsync());

async function runWith(limits: MessageInitShape<typeof LimitsSchema> = {}, agent = "writer") {
  const runs = suite.connection.client(RunService);
  const input = [{ item: { case: "message" as const, value: { role: Role.USER, content: textContent("go") } } }];
  const runId = (await runs.createRun({ agent, input, options: { limits } })).run?.id ?? "";
  return until(
    async () => {
      const { run } = await runs.getRun({ runId });
      return run !== undefined && run.state >= RunState.COMPLETED && run;
    },
    { timeoutMs: 60_000 },
  );
}

it("LOOP-12 servers of both eras have texts written by the agent's model where its file allows it, on the run's account", async () => {
  const run = await runWith();
  expect(run.error).toBe("");
  expect(run.outputText).toMatch(/^A line of mine\. A line of mine\. .*(sampling|not support|Method not found)/i);
  expect(run.usage?.inputTokens, "its two turns, and the two texts").toBe(4n);
}, 120_000);

it("LOOP-12 texts that use up the run's budget end the run", async () => {
  const run = await runWith({ maxTokens: 6n });
  expect(run).toMatchObject({ turnCount: 1, endReason: RunEndReason.MAX_TOKENS });
  expect(run.usage?.outputTokens).toBeGreaterThan(6n);
}, 120_000);

it("LOOP-12 a text is as long as its server asks for at most, and said to be cut off", async () => {
  const run = await runWith({}, "brief");
  expect(run.error).toBe("");
  expect(run.outputText).toBe("A line / maxTokens");
  expect(run.usage?.outputTokens, "its two turns, and two words").toBe(4n + 2n + 4n);
}, 120_000);

it("LOOP-12 texts asked for at once are held to the run's budget together", async () => {
  const run = await runWith({ maxTokens: 12n }, "many");
  expect(run.endReason).toBe(RunEndReason.MAX_TOKENS);
  expect(run.usage?.inputTokens, "its turn, and the two texts for which something was left").toBe(3n);
}, 120_000);
