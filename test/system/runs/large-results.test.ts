// A result over the limit, as its model, a program of its owner and a person at the command line read the rest of it.

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { ToolCatalogService } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { until } from "#runtime/time/until.ts";
import { runCommand } from "../../harness/commands/command.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const scripts = fileURLToPath(new URL("../fixtures/results", import.meta.url));

const stack = new AsyncDisposableStack();
let suite: TestSuite;
let directory = "";
beforeAll(async () => {
  suite = stack.use(await openTestSuite({ env: { TOOLBUS_SCRIPTS: scripts, TOOLBUS_MAX_RESULT_BYTES: "8192" } }));
  directory = await mkdtemp(join(tmpdir(), "toolbus-results-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const tool = { name: "echo", executionType: ExecutionType.INTERNAL };
  await suite.connection.client(ToolCatalogService).applyCatalogTool({ tool });
  const agent = { name: "reader", model: { provider: "scripted", model: "reader" }, tools: { use: ["echo"] } };
  await suite.connection.client(AgentService).applyAgent({ agent });
});
afterAll(() => stack.disposeAsync());

const text = "x".repeat(30_000);
const whole = JSON.stringify({ success: true, args: { text, end: "the last words" } });

it("LOOP-8 a model reads the end of a result that it was shown shortened, and its owner writes the whole to a file", async () => {
  const runs = suite.connection.client(RunService);
  const input = [{ item: { case: "message" as const, value: { role: Role.USER, content: textContent(text) } } }];
  const runId = (await runs.createRun({ agent: "reader", input })).run?.id ?? "";
  const run = await until(
    async () => {
      const { run } = await runs.getRun({ runId });
      return run !== undefined && run.state >= RunState.COMPLETED && run;
    },
    { timeoutMs: 60_000 },
  );
  expect(run).toMatchObject({ state: RunState.COMPLETED, outputText: whole.slice(30_000) });
  const outputs = run.items.flatMap(({ item }) => (item.case === "functionCallOutput" ? [item.value] : []));
  const reference = outputs[0]?.result?.storedReference ?? "";
  expect(reference).toMatch(/\.sha256-/);

  const file = join(directory, "result.json");
  const toolbus = (...args: string[]) => runCommand(["--url", suite.url, "calls", "result", ...args]);
  expect(await toolbus(reference, "--output", file)).toMatchObject({ exitCode: 0, stdout: "" });
  expect(await readFile(file, "utf8")).toBe(whole);
  expect(await toolbus(reference)).toMatchObject({ exitCode: 0, stdout: whole, stderr: "" });
  expect((await toolbus(reference.replace("sha256-", "sha256-0"))).stderr).toContain("there is no result");
}, 90_000);
