// Those who follow a log have a consumer each, on one node chosen at random. The dead one may be chosen for minutes.

import { expect, it } from "vitest";
import { appendFenced } from "#runtime/bus/streams/append/append.ts";
import { followSubject } from "#runtime/bus/streams/follow/follow.ts";
import { until } from "#runtime/time/until.ts";
import { openCluster } from "../../../harness/cluster/cluster.ts";

const SUBJECT = "toolbus.run.followed";
const FOLLOWERS = 24;

it("BUS-6 a log is followed on, and begun to be followed, while a node stays dead that had consumers", async () => {
  await using cluster = await openCluster();
  const bus = await cluster.connect();
  const end = new AbortController();
  const seen: number[][] = [];
  const follow = async () => {
    const sequences: number[] = [];
    seen.push(sequences);
    for await (const { sequence } of followSubject(bus, SUBJECT, { signal: end.signal })) sequences.push(sequence);
  };
  const followMore = () => Array.from({ length: FOLLOWERS }, follow);
  const untilAllSaw = (sequence: number) =>
    until(() => seen.every((sequences) => sequences.at(-1) === sequence), { timeoutMs: 15_000 });
  const append = async (expectedLastSequence: number) => {
    const outcome = await appendFenced(bus, { subject: SUBJECT, expectedLastSequence, payload: "said" });
    if (outcome.kind !== "appended") throw new Error(outcome.kind);
    return outcome.sequence;
  };

  const following = followMore();
  const first = await append(0);
  await untilAllSaw(first);
  const connectedTo = bus.connection.getServer();
  const { cluster: leading } = await bus.manager.streams.info("TOOLBUS_RUNS");
  const dead = cluster.nodes.find(({ name, url }) => name !== leading?.leader && !url.endsWith(connectedTo));
  await dead?.kill();

  following.push(...followMore());
  const second = await append(first);
  await untilAllSaw(second);
  end.abort();
  await Promise.all(following);
  expect(seen).toEqual(seen.map(() => [first, second]));
});
