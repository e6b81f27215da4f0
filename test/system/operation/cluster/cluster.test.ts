// The many-machine form: three NATS nodes with the configuration of docker-compose.yml.

import { JetStreamApiError } from "@nats-io/jetstream";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Bus } from "#runtime/bus/bus.ts";
import { BUCKETS, OBJECT_STORES, STREAMS } from "#runtime/bus/declarations/declarations.ts";
import { appendFenced } from "#runtime/bus/streams/append/append.ts";
import { readSubject } from "#runtime/bus/streams/read.ts";
import { until } from "#runtime/time/until.ts";
import { type Cluster, openCluster } from "../../../harness/cluster/cluster.ts";

const stack = new AsyncDisposableStack();
let cluster: Cluster;
let bus: Bus;

beforeAll(async () => {
  cluster = stack.use(await openCluster());
  bus = await cluster.connect();
});
afterAll(() => stack.disposeAsync());

it("BUS-6 every stream and every bucket has a copy on each of the three nodes", async () => {
  const stores = await Array.fromAsync(bus.manager.streams.list());
  const declared = [STREAMS, BUCKETS, OBJECT_STORES].flatMap((stores) => Object.keys(stores));
  expect(stores).toHaveLength(declared.length);
  for (const { config, cluster: group } of stores) {
    expect({ name: config.name, replicas: config.num_replicas }).toEqual({ name: config.name, replicas: 3 });
    expect([group?.leader, ...(group?.replicas ?? []).map((replica) => replica.name)].sort()).toEqual([
      "nats-1",
      "nats-2",
      "nats-3",
    ]);
  }
});

it("whoever opens the bus without a number of copies in mind leaves those that stand", async () => {
  await cluster.connect({ replicas: undefined });
  expect((await bus.manager.streams.info("TOOLBUS_RUNS")).config.num_replicas).toBe(3);
});

it("LOOP-13 of those who follow the same message one wins, though the cluster refuses with 10164 while one is in flight", async () => {
  const race = (subject: string) => Array.from({ length: 12 }, (_, index) => ({ subject, payload: `${index}` }));
  const expected = { expect: { lastSubjectSequence: 0 } };
  let bareRaces = 0;
  const isRefusedInFlight = async () => {
    const bare = race(`toolbus.run.bare-${bareRaces++}`).map((one) =>
      bus.jetstream.publish(one.subject, one.payload, expected),
    );
    const outcomes = await Promise.allSettled(bare);
    const reasons = outcomes.map((outcome): unknown => (outcome.status === "rejected" ? outcome.reason : undefined));
    return reasons.some((error) => error instanceof JetStreamApiError && error.code === 10164);
  };
  await until(isRefusedInFlight, { what: "the cluster to refuse with 10164" });

  for (let round = 0; round < 5; round++) {
    const fenced = race(`toolbus.run.race-${round}`).map((one) =>
      appendFenced(bus, { ...one, expectedLastSequence: 0 }),
    );
    const kinds = (await Promise.all(fenced)).map((outcome) => outcome.kind);
    expect(kinds.filter((kind) => kind === "appended")).toHaveLength(1);
    expect(kinds.filter((kind) => kind === "conflict")).toHaveLength(11);
  }
});

it("LOOP-13 the node that leads is killed under fenced appends: they go on, and no acknowledged one is lost or doubled", async () => {
  const stop = new AbortController();
  const writers = await Promise.all(Array.from({ length: 6 }, (_, index) => openWriter(index)));
  const working = Promise.all(writers.map((writer) => writer.writeUntil(stop.signal)));
  const total = () => writers.reduce((sum, writer) => sum + writer.acknowledged.length, 0);
  await until(() => total() > 100);

  const leader = (await bus.manager.streams.info("TOOLBUS_RUNS")).cluster?.leader;
  const victim = cluster.nodes.find((node) => node.name === leader);
  await victim?.kill();
  const before = writers.map((writer) => writer.acknowledged.length);
  await until(() => writers.every((writer, index) => writer.acknowledged.length > (before[index] ?? 0) + 10), {
    timeoutMs: 20_000,
    what: "appends to go on without the node that led",
  });
  const next = (await bus.manager.streams.info("TOOLBUS_RUNS")).cluster?.leader;
  expect(cluster.nodes.map((node) => node.name).filter((name) => name !== leader)).toContain(next);

  stop.abort();
  await working;
  for (const { subject, acknowledged } of writers) {
    const stored = (await Array.fromAsync(readSubject(bus, subject))).map((message) => message.sequence);
    expect(stored).toEqual(acknowledged);
  }
  await victim?.restart();
  const isWhole = async () => {
    const { cluster: group } = await bus.manager.streams.info("TOOLBUS_RUNS");
    return group?.replicas?.every((replica) => replica.current && !replica.offline);
  };
  await until(isWhole, { timeoutMs: 20_000, what: "the node that came back to have everything again" });
});

/** Appends to a subject of its own, each append fenced by the one before, as the log of a run is written. */
async function openWriter(index: number) {
  const subject = `toolbus.run.writer-${index}`;
  const own = await cluster.connect();
  const acknowledged: number[] = [];
  const writeUntil = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      const expectedLastSequence = acknowledged.at(-1) ?? 0;
      const outcome = await appendFenced(own, { subject, expectedLastSequence, payload: `${acknowledged.length}` });
      if (outcome.kind === "conflict") throw new Error(`${subject}: a conflict, though nobody else writes`);
      acknowledged.push(outcome.sequence);
    }
  };
  return { subject, acknowledged, writeUntil };
}
