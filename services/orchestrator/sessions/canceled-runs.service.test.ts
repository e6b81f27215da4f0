import { afterAll, beforeAll, expect, test } from "vitest";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { until } from "#runtime/time/until.ts";
import { createFakeRouter } from "../testing/fakes/fake-router.ts";
import { openWorld, userItem, type World } from "../testing/test-orchestrator.ts";

const router = createFakeRouter([{ name: "hang", answer: () => new Promise(() => {}) }]);
let isDeleted = false;
let world: World;
let one: AsyncDisposable;
beforeAll(async () => {
  const onRequest = (method: string) => {
    const isOfAgent = method === "GetAgent" || method === "ListTools";
    if (isDeleted && isOfAgent) refuse("not_found", "there is no agent waiter", { reason: "AGENT_NOT_FOUND" });
  };
  world = await openWorld({ router, onRequest });
  one = await world.openOrchestrator("one", { TOOLBUS_DRAIN: "100" });
  await world.writeScript("waiter", { turns: [{ calls: [{ name: "hang", id: "h" }] }, { text: "never" }] });
});
afterAll(() => world[Symbol.asyncDispose]());

async function endOf(runId: string) {
  const endedRun = async () => {
    const { run: now } = await world.runs.getRun({ runId });
    return (now?.state ?? 0) >= RunState.COMPLETED && now;
  };
  return until(endedRun, { what: "the run to end" });
}

test("LOOP-15 a run whose agent is gone is canceled with its calls by whoever takes it up", async () => {
  const { run } = await world.runs.createRun({ agent: "waiter", input: [userItem("go")] });
  const runId = run?.id ?? "";
  await until(() => router.requests.length > 0, { what: "the call to begin" });
  isDeleted = true;
  const { cancelToolCall } = router;
  router.cancelToolCall = async () => {
    router.cancelToolCall = cancelToolCall;
    refuse("unavailable", "no router at the moment", { reason: "SERVICE_UNAVAILABLE" });
  };
  await world.runs.cancelRun({ runId });
  expect(await endOf(runId)).toMatchObject({ state: RunState.CANCELED, endReason: RunEndReason.CANCELED });
  expect(router.canceled).toContain(`${runId}_h`);
});

test("LOOP-15 a run that fails since its agent is gone leaves none of its calls in flight", async () => {
  isDeleted = false;
  const asked = router.requests.length;
  const { run } = await world.runs.createRun({ agent: "waiter", input: [userItem("go")] });
  const runId = run?.id ?? "";
  await until(() => router.requests.length > asked, { what: "the call to begin" });
  await one[Symbol.asyncDispose]();
  isDeleted = true;
  await world.openOrchestrator("two");
  expect(await endOf(runId)).toMatchObject({ state: RunState.FAILED, endReason: RunEndReason.AGENT_UNAVAILABLE });
  expect(router.canceled).toContain(`${runId}_h`);
});
