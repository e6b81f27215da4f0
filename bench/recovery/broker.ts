/*
 * A run that appends without a pause, and the broker killed (SIGKILL) under it and started again on its store: from the kill to
 * the run's next append, and whether everything that a watcher was shown, which was acknowledged, still stands in the log.
 */

import { fromBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { StoredRunEventSchema } from "#gen/toolbus/internal/run/v1/run_log_pb.ts";
import { readSubject } from "#runtime/bus/streams/read.ts";
import { until } from "#runtime/time/until.ts";
import { quantileOf } from "../loop/figures/quantile.ts";
import { quiet } from "../loop/plan.ts";
import { loopServices, openWorld, startRun, type World } from "../loop/world.ts";
import { type BenchResult, rounded } from "../measuring/result.ts";

const bench = "recovery";

export async function* measureBrokerDeaths({ deaths }: { deaths: number }): AsyncIterable<BenchResult> {
  await using world = await openWorld({ services: loopServices });
  const { id } = await startRun(world, { ...quiet, id: crypto.randomUUID(), turns: 100_000 });
  const watcher = watchShown(world, id);
  const timesMs: number[] = [];
  for (let death = 0; death < deaths; death += 1) {
    const before = watcher.shown.size;
    await until(() => watcher.shown.size > before + 20, { timeoutMs: 60_000, what: "the run to go on" });
    const killedAtMs = Date.now();
    await world.server.kill();
    await world.server.restart();
    timesMs.push(await nextAppendAfter(world, id, killedAtMs));
  }
  await world.runs.cancelRun({ runId: id, reason: "measured" });
  const stored = new Map((await eventsOf(world, id)).map(({ sequence, writtenAt }) => [sequence, writtenAt]));
  const lost = [...watcher.shown].filter(([sequence, writtenAt]) => stored.get(sequence) !== writtenAt).length;
  yield {
    bench,
    metric: "broker_p50_ms",
    value: rounded(quantileOf(timesMs, 0.5)),
    unit: "ms",
    baseline: null,
    ratio: null,
  };
  yield { bench, metric: "broker_lost", value: lost, unit: "events", baseline: watcher.shown.size, ratio: null };
}

/** What a watcher is shown, by sequence; a watch that is lost with the server is taken up where it stood. */
function watchShown(world: World, runId: string): { shown: ReadonlyMap<number, number> } {
  const shown = new Map<number, number>();
  void (async () => {
    for (let hasEnded = false; !hasEnded; ) {
      try {
        for await (const { update } of world.runs.watchRun({ runId, fromSequence: BigInt(shown.size) })) {
          if (update.case !== "event") continue;
          shown.set(update.value.sequence, Number(update.value.createTime?.nanos ?? 0));
          hasEnded = update.value.event.case === "ended";
        }
      } catch (error) {
        const isPassing = error instanceof ConnectError && error.code === Code.Unavailable;
        if (!isPassing) return; // the world is closed under it, or what is missing shows in the comparison
      }
    }
  })();
  return { shown };
}

async function nextAppendAfter(world: World, runId: string, atMs: number): Promise<number> {
  const found = await until(async () => (await eventsOf(world, runId)).find((event) => event.atMs > atMs), {
    timeoutMs: 60_000,
    intervalMs: 50,
    what: "the run's next append",
  });
  return found.atMs - atMs;
}

async function eventsOf({ bus }: World, runId: string) {
  const events: { sequence: number; writtenAt: number; atMs: number }[] = [];
  for await (const { data, time } of readSubject(bus, `toolbus.run.${runId}`)) {
    const { event } = fromBinary(StoredRunEventSchema, data);
    if (event === undefined) continue;
    events.push({ sequence: event.sequence, writtenAt: event.createTime?.nanos ?? 0, atMs: time.getTime() });
  }
  return events;
}
