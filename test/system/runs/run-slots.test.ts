// An orchestrator that works on few sessions at a time.

import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { retryWhile } from "#runtime/time/retry/retry.ts";
import { until } from "#runtime/time/until.ts";
import { openConnection } from "../../../cli/connection.ts";
import { openTestSuite } from "../../harness/suite.ts";

/** A busy machine may lose its connection to the bus for a moment, as clients are told, who repeat with the same key. */
const isUnavailable = (error: unknown) => ConnectError.from(error).code === Code.Unavailable;

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

it("SEC-6 a principal with more runs than there are slots delays nobody, and its runs begin as slots become free", async () => {
  const keys = { alice: "the-key-of-alice-herself", mallory: "the-key-of-mallory-herself" };
  const all = `olga:the-key-of-olga-herself,alice:${keys.alice},mallory:${keys.mallory}`;
  const env = {
    TOOLBUS_SCRIPTS: scripts,
    TOOLBUS_RUN_SLOTS: "8",
    TOOLBUS_API_KEYS: all,
    TOOLBUS_OPERATORS: "olga",
    TOOLBUS_DEFAULT_GRANT: "alice,mallory",
  };
  await using suite = await openTestSuite({ env });
  const at = (apiKey: string) => openConnection({ url: suite.url, apiKey });
  const agents = at("the-key-of-olga-herself").client(AgentService);
  for (const name of ["late", "helper"]) {
    await agents.applyAgent({ agent: { name, model: { provider: "scripted", model: name } } });
  }
  const runsOf = (key: string) => at(key).client(RunService);
  const start = async (key: string, agent: string) => {
    const message = { role: Role.USER, content: textContent("go") };
    const input = [{ item: { case: "message", value: message } } as const];
    const create = { agent, input, idempotencyKey: randomUUID() };
    const { run } = await retryWhile(isUnavailable, () => runsOf(key).createRun(create), {
      initialMs: 50,
      maxMs: 1_000,
    });
    return run?.id ?? "";
  };
  const idsIn = async (key: string, state: RunState) => {
    const { runs } = await runsOf(key).listRuns({ pageSize: 100 });
    return runs.flatMap((run) => (run.state === state ? [run.id] : []));
  };
  const areInProgress = (count: number) => async () =>
    (await idsIn(keys.mallory, RunState.IN_PROGRESS)).length === count;
  await Promise.all(Array.from({ length: 20 }, () => start(keys.mallory, "late")));
  await until(areInProgress(7), { timeoutMs: 30_000, what: "all but one of the slots to be taken" });

  const hers = await Promise.all([1, 2, 3].map(() => start(keys.alice, "helper")));
  const areComplete = async () => (await idsIn(keys.alice, RunState.COMPLETED)).length === hers.length;
  await until(areComplete, { timeoutMs: 30_000, what: "the runs of the other principal to complete" });

  const [first, ...rest] = await idsIn(keys.mallory, RunState.QUEUED);
  expect(rest).toHaveLength(12);
  await runsOf(keys.mallory).cancelRun({ runId: `${first}` });
  const isCanceled = async () => (await idsIn(keys.mallory, RunState.CANCELED)).includes(`${first}`);
  await until(isCanceled, { timeoutMs: 30_000, what: "a run that waits for a slot to be canceled" });
  for (const runId of await idsIn(keys.mallory, RunState.IN_PROGRESS)) await runsOf(keys.mallory).cancelRun({ runId });
  await until(areInProgress(7), { timeoutMs: 60_000, what: "runs that waited to begin" });
});
