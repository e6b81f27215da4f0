/*
 * Two orchestrators, one run in the hands of one of them, which is killed (SIGKILL) at any moment between its signs of life:
 * from the kill to the claim by the other, as the server stored it.
 */

import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { StoredRunEventSchema } from "#gen/toolbus/internal/run/v1/run_log_pb.ts";
import { lastOf } from "#runtime/bus/streams/append/append.ts";
import { readSubject } from "#runtime/bus/streams/read.ts";
import { until } from "#runtime/time/until.ts";
import { quantileOf } from "../loop/figures/quantile.ts";
import { quiet } from "../loop/plan.ts";
import { loopServices, type Orchestrator, openWorld, startRun, type World } from "../loop/world.ts";
import { type BenchResult, rounded } from "../measuring/result.ts";

const bench = "recovery";

/** The signs of life of a process come well within this time: a kill at a random moment of it finds every distance to the last. */
const phaseMs = 700;

interface Claim {
  readonly instance: string;
  readonly epoch: number;
  readonly atMs: number;
}

export async function* measureOrchestratorDeaths(options: {
  deaths: number;
  seed: number;
}): AsyncIterable<BenchResult> {
  await using world = await openWorld({ services: loopServices, orchestrators: 2 });
  const random = randomFrom(options.seed);
  const timesMs: number[] = [];
  let alive = [...world.orchestrators];
  for (let death = 0; death < options.deaths; death += 1) {
    const { id } = await startRun(world, { ...quiet, id: crypto.randomUUID(), deltas: 3_000, deltaMs: 20 });
    const [claim] = await claimsOf(world, id, 1);
    await setTimeout(random() * phaseMs);
    const victim = alive.find(({ instance }) => claim?.instance.startsWith(`${instance}-`));
    if (victim === undefined) throw new Error(`nobody has claimed ${id}`);
    const killedAtMs = Date.now();
    await kill(victim);
    const claims = await claimsOf(world, id, 2);
    timesMs.push((claims[1]?.atMs ?? Number.NaN) - killedAtMs);
    await world.runs.cancelRun({ runId: id });
    alive = [...alive.filter((one) => one !== victim), await world.openOrchestrator()];
  }
  yield result("orchestrator_p50_ms", quantileOf(timesMs, 0.5));
  yield result("orchestrator_p99_ms", quantileOf(timesMs, 0.99));
}

async function kill({ child }: Orchestrator): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

/** The claims of a run, once there are so many. */
async function claimsOf({ bus }: World, runId: string, count: number): Promise<Claim[]> {
  const subject = `toolbus.run.${runId}`;
  const claims = await until(
    async () => {
      if ((await lastOf(bus, subject)) === null) return undefined;
      const found: Claim[] = [];
      for await (const { data, time } of readSubject(bus, subject)) {
        const { event, epoch, instance } = fromBinary(StoredRunEventSchema, data);
        if (event?.event.case === "claimed") found.push({ instance, epoch, atMs: time.getTime() });
      }
      return found.length >= count ? found : undefined;
    },
    { timeoutMs: 60_000, intervalMs: 20, what: `${count} claims of ${runId}` },
  );
  return claims;
}

function result(metric: string, ms: number): BenchResult {
  return { bench, metric, value: rounded(ms), unit: "ms", baseline: null, ratio: null };
}

/** Numbers between 0 and 1, the same ones for a seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
