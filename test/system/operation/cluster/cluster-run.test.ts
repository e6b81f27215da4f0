// The whole suite against three NATS nodes, with a run in it when the node that leads its log is killed.

import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { InputItemSchema, RunService, type WatchRunResponse } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { isUnavailable } from "#runtime/failure/connect.ts";
import { retryWhile } from "#runtime/time/retry/retry.ts";
import { followRun } from "../../../../cli/watching/run-follower.ts";
import { writeCountingAgent } from "../../../harness/agents/counting-agent.ts";
import { openCluster } from "../../../harness/cluster/cluster.ts";
import { openTestSuite } from "../../../harness/suite.ts";

const steps = Array.from({ length: 25 }, (_, index) => index + 1);

it("BUS-6 LOOP-13 a run through the gateway ends well though the node that leads its log is killed meanwhile", async () => {
  await using stack = new AsyncDisposableStack();
  const cluster = stack.use(await openCluster());
  const turns = steps.map((step) => ({ calls: [{ name: "note", arguments: { step } }] }));
  const directories = await writeCountingAgent(stack, turns);
  const suite = stack.use(
    await openTestSuite({
      natsUrl: cluster.url,
      services: ["gateway", "orchestrator", "tool-router", "caller-relay", "spaces"],
      env: { ...directories, TOOLBUS_REPLICAS: "3", TOOLBUS_BUS_CREDENTIALS: cluster.credentials },
    }),
  );
  const bus = await cluster.connect();
  const leaderOfRuns = async () => (await bus.manager.streams.info("TOOLBUS_RUNS")).cluster?.leader;

  const input = create(InputItemSchema, {
    item: { case: "message", value: { role: Role.USER, content: textContent("go") } },
  });
  // The nodes tell each other of subscriptions: the gateway's may hear a little later than another one of an orchestrator that is ready.
  const runs = suite.connection.client(RunService);
  const request = { agent: "counting", input: [input], idempotencyKey: "once" };
  const patience = { initialMs: 50, maxMs: 500, patienceMs: 60_000 };
  const { run } = await retryWhile(isUnavailable, () => runs.createRun(request), patience);
  const events: RunEvent[] = [];
  const kill = async () => {
    const leader = await leaderOfRuns();
    await cluster.nodes.find((node) => node.name === leader)?.kill();
    return { leader, eventsBefore: events.length };
  };
  let killed: ReturnType<typeof kill> | undefined;
  const show = ({ update }: WatchRunResponse) => {
    if (update.case !== "event") return;
    events.push(update.value);
    if (update.value.event.case === "callFinished") killed ??= kill();
  };
  const watching = new AbortController();
  const { signal } = watching;
  const status = await followRun(suite.connection, run?.id ?? "", { printer: { show }, patienceMs: 30_000, signal });
  watching.abort(); // a stream that is left open would hold up the gateway's end

  expect(status).toBe(RunState.COMPLETED);
  const death = await killed;
  expect(death?.leader).toMatch(/^nats-\d$/);
  expect(await leaderOfRuns()).not.toBe(death?.leader);
  expect(events.length).toBeGreaterThan(death?.eventsBefore ?? 0);
  expect(events.map((event) => event.sequence)).toEqual(events.map((_, index) => index));
  expect(events.filter((event) => event.event.case === "ended")).toHaveLength(1);
  const results = events.flatMap(({ event }) =>
    event.case === "callFinished" ? [event.value.result?.outputJson] : [],
  );
  expect(results.map((text) => JSON.parse(text ?? ""))).toEqual(
    steps.map((step) => ({ success: true, args: { step } })),
  );
});
