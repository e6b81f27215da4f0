import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RunContextService } from "#gen/toolbus/internal/space/v1/run_context_service_pb.ts";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { delay } from "#runtime/time/delay.ts";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { until } from "#runtime/time/until.ts";
import { createFakeRouter } from "../testing/fakes/fake-router.ts";
import { createFakeSpaces } from "../testing/fakes/fake-spaces.ts";
import { openWorld, userItem, type World } from "../testing/test-orchestrator.ts";

const takes = { toolsMs: 0, inboxMs: 0 };
const TOO_LONG_MS = 8_000;

let world: World;
beforeAll(async () => {
  const fake = createFakeRouter([]);
  const listTools: typeof fake.listTools = async (...given) => {
    await delay(takes.toolsMs);
    return fake.listTools(...given);
  };
  const getRunContext = async () => {
    await delay(takes.inboxMs);
    return {};
  };
  const routes = (router: ConnectRouter) => void router.service(RunContextService, { getRunContext });
  const router = Object.assign(Object.create(fake), { listTools });
  world = await openWorld({ router, spaces: { ...createFakeSpaces(), routes } });
  await world.openOrchestrator("one");
  await world.writeScript("echo", { turns: [{ text: "done" }] });
});
afterAll(() => world[Symbol.asyncDispose]());

async function endOf(timeoutMs: number) {
  const startedAtMs = tickedMs();
  const options = { limits: { timeout: durationFromMs(timeoutMs) } };
  const { run } = await world.runs.createRun({ agent: "echo", input: [userItem("go")], options });
  const endedRun = async () => {
    const { run: now } = await world.runs.getRun({ runId: run?.id ?? "" });
    return (now?.state ?? 0) >= RunState.COMPLETED && now;
  };
  const { state, endReason } = await until(endedRun, { what: "the run to end", timeoutMs: 20_000 });
  return { state, endReason, afterMs: tickedMs() - startedAtMs };
}

test.each([
  ["its tools are waited for", { toolsMs: TOO_LONG_MS }],
  ["its tools are waited for, and its agent is known", { toolsMs: TOO_LONG_MS }],
  ["its inbox is waited for", { inboxMs: TOO_LONG_MS }],
])("LOOP-12 a run keeps its time while %s", async (_, slow) => {
  Object.assign(takes, { toolsMs: 0, inboxMs: 0 }, slow);
  const { afterMs, ...end } = await endOf(1_000);
  expect(end).toEqual({ state: RunState.INCOMPLETE, endReason: RunEndReason.DEADLINE });
  expect(afterMs).toBeLessThan(TOO_LONG_MS / 2);
});
