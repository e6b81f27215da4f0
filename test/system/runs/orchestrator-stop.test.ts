// An orchestrator that stops in good order while a call of its run goes on for longer than it may drain.

import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { until } from "#runtime/time/until.ts";
import { writeFiles } from "../../harness/agents/write-files.ts";
import { openTestSuite } from "../../harness/suite.ts";

const patient = { timeoutMs: 30_000, intervalMs: 50 };

it("LOOP-13 LOOP-14 an orchestrator that stops leaves its calls to the next one, and cancels none", async () => {
  await using stack = new AsyncDisposableStack();
  const held: ServerResponse[] = [];
  let cutOff = 0;
  const server = createServer((_, response) => {
    response.on("close", () => (cutOff += response.writableFinished ? 0 : 1));
    held.push(response);
  }).listen(0, "127.0.0.1");
  stack.defer(() => server.closeAllConnections());
  const directory = await mkdtemp(join(tmpdir(), "toolbus-test-stop-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  await until(() => server.listening);
  const { port } = server.address() as AddressInfo;
  await writeFiles(directory, {
    "agents/payer.json": {
      name: "payer",
      model: { provider: "scripted", model: "payer.json" },
      tools: { use: ["pay"] },
    },
    "tools/pay.json": {
      name: "pay",
      executionType: "gateway",
      visible: false,
      timeout: 60_000,
      execution: { url: `http://127.0.0.1:${port}/` },
    },
    "models/payer.json": { turns: [{ calls: [{ name: "pay" }] }, { text: "It says: {{result.0}}" }] },
  });
  const [TOOLBUS_AGENTS, TOOLBUS_TOOLS, TOOLBUS_SCRIPTS] = ["agents", "tools", "models"].map((name) =>
    join(directory, name),
  );
  const env = {
    TOOLBUS_AGENTS,
    TOOLBUS_TOOLS,
    TOOLBUS_SCRIPTS,
    TOOLBUS_GATEWAY_ALLOW: `127.0.0.1:${port}`,
    TOOLBUS_DRAIN: "100ms",
  };
  const suite = stack.use(await openTestSuite({ isolate: true, env }));
  const runs = suite.connection.client(RunService);
  const message = { role: Role.USER, content: textContent("pay") };
  const { run } = await runs.createRun({ agent: "payer", input: [{ item: { case: "message", value: message } }] });
  await until(() => held.length === 1, { ...patient, what: "the call to begin" });
  const orchestrator = suite.services.find(({ service }) => service === "orchestrator");
  const before = orchestrator?.pid ?? 0;
  process.kill(before, "SIGTERM");
  await until(() => orchestrator?.pid !== undefined && orchestrator.pid !== before, {
    ...patient,
    what: "the next one",
  });
  const standing = async () => {
    const { run: now } = await runs.getRun({ runId: run?.id ?? "" }).catch(() => ({ run: undefined })); // it is starting
    return now;
  };
  await until(async () => ((await standing())?.lastSequence ?? 0) >= 3, { ...patient, what: "the second claim" });
  held[0]?.writeHead(200, { "content-type": "application/json" }).end('"paid"');
  const ended = await until(
    async () => {
      const now = await standing();
      return now !== undefined && now.state >= RunState.COMPLETED && now;
    },
    { ...patient, what: "the run to end" },
  );
  expect(ended).toMatchObject({ state: RunState.COMPLETED, outputText: "It says: paid" });
  expect([cutOff, held.length]).toEqual([0, 1]);
}, 120_000);
