// A result over the limit, as its model, a program of its owner and a person at the command line read the rest of it.

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { ToolCatalogService } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { until } from "#runtime/time/until.ts";
import { runCommand } from "../../harness/commands/command.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";
import { ask } from "../doors/fixtures/responses-door.ts";

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
  for (const name of ["reader", "asker"]) {
    const agent = { name, model: { provider: "scripted", model: name }, tools: { use: ["echo"] } };
    await suite.connection.client(AgentService).applyAgent({ agent });
  }
});
afterAll(() => stack.disposeAsync());

const said = (text: string) => [
  { item: { case: "message" as const, value: { role: Role.USER, content: textContent(text) } } },
];

async function becomes(runId: string, state: RunState) {
  const runs = suite.connection.client(RunService);
  const standing = async () => (await runs.getRun({ runId })).run;
  return until(
    async () => {
      const run = await standing();
      return run?.state === state && run;
    },
    { timeoutMs: 30_000 },
  );
}

const text = "x".repeat(30_000);
const whole = JSON.stringify({ success: true, args: { text, end: "the last words" } });

it("LOOP-8 a model reads the end of a result that it was shown shortened, and its owner writes the whole to a file", async () => {
  const runs = suite.connection.client(RunService);
  const runId = (await runs.createRun({ agent: "reader", input: said(text) })).run?.id ?? "";
  const run = await becomes(runId, RunState.COMPLETED);
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

describe("LOOP-8 an output of a run's client over the limit", () => {
  const output = "é".repeat(2_500_000 - 2);
  const asked = JSON.stringify(output);

  it("is read by its model, in forks too, and its owner, as that of any tool, also when it is submitted again", async () => {
    const runs = suite.connection.client(RunService);
    const options = { functionTools: [{ name: "ask" }] };
    const runId = (await runs.createRun({ agent: "asker", input: said("hi"), options })).run?.id ?? "";
    await becomes(runId, RunState.REQUIRES_ACTION);
    const outcome = { case: "resultJson" as const, value: asked };
    const submit = () => runs.submitOutputs({ runId, outputs: [{ callId: "who", submissionId: "once", outcome }] });
    await submit();
    const run = await becomes(runId, RunState.COMPLETED);
    expect(run.outputText).toBe(asked.slice(-4));
    await submit();
    const fork = await runs.forkRun({ runId, atSequence: 4 }); // accepted, claimed, turnCommitted, parked, callFinished
    expect(await becomes(fork.run?.id ?? "", RunState.COMPLETED)).toMatchObject({ outputText: asked.slice(-4) });
    const [first] = run.items.flatMap(({ item }) => (item.case === "functionCallOutput" ? [item.value.result] : []));
    expect(first?.outputJson.length).toBeLessThan(8_192);
    const read = await runCommand(["--url", suite.url, "calls", "result", first?.storedReference ?? ""]);
    expect(read).toMatchObject({ exitCode: 0, stdout: asked });
  });

  it("is read by its model through the doors of OpenAI, also when the request is repeated", async () => {
    const post = async (path: string, body: object) => {
      const headers = { "idempotency-key": String(JSON.stringify(body).length + path.length) };
      const response = await ask({ url: suite.url, key: suite.apiKey ?? "", headers }, `POST ${path}`, body);
      return [response.status, await response.text()];
    };
    const tool = { name: "ask", parameters: { type: "object" } };
    const first = { model: "asker", input: "hi", tools: [{ type: "function", ...tool }] };
    const { id } = JSON.parse(String((await post("/v1/responses", first))[1]));
    const given = { type: "function_call_output", call_id: "who", output };
    const calls = [{ id: "who", type: "function", function: { name: "ask", arguments: "{}" } }];
    const messages = [
      { role: "user", content: "hi" },
      { role: "assistant", content: null, tool_calls: calls },
      { role: "tool", tool_call_id: "who", content: output },
    ];
    const functions = [{ type: "function", function: tool }];
    const answers = [];
    for (const [path, body] of [
      ["/v1/chat/completions", { messages, model: "asker", tools: functions }],
      ["/v1/responses", { previous_response_id: id, ...first, input: [given] }],
    ] as const) {
      answers.push(await post(path, body));
      expect(answers.at(-1)).toEqual([200, expect.stringContaining(JSON.stringify(asked.slice(-4)))]);
      expect(await post(path, body)).toEqual(answers.at(-1));
    }
    const { id: next } = JSON.parse(String(answers[1]?.[1]));
    const goOn = (text: string) => {
      const input = [
        { ...given, output: text },
        { role: "user", content: "more" },
      ];
      return post("/v1/responses", { ...first, previous_response_id: next, input });
    };
    expect(await goOn(output)).toEqual([200, expect.stringContaining(`"name":"ask"`)]);
    expect(await goOn(`${output}!`)).toEqual([409, expect.stringContaining("has its answer already")]);
  });
});
