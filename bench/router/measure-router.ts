import { quantileOf } from "../loop/figures/quantile.ts";
import { type BenchResult, comparedResult } from "../measuring/result.ts";
import { measureDecisions } from "./decide.ts";
import type { Report } from "./setting.ts";
import { openRouterWorld, type RouterWorld } from "./world.ts";

/*
 * How long does a synchronous call take that a service outside answers at once? Who calls and who watches are processes of
 * their own, on routers in processes of their own; answers go through either router.
 *
 * With so many calls in flight at all times the machine is saturated, and the time of a call is its share of the processors
 * times the calls in flight. So each such time stands beside that of a bare request on the same bus between the same two
 * processes (`baseline`), `external_cpu_ms` says what a call costs over all processes, and `external_paced_*` how long calls
 * take that begin at a steady pace.
 *
 * `decide_us` is what the router's decision on a call costs by itself, with 1,000 tools and 100 agents.
 */

export interface RouterOptions {
  calls: number;
  inFlight: number;
  perSecond: number;
  onProgress: (message: string) => void;
}

const bench = "router";
const STALL_MS = 1_000;
const AT_ONCE = 200;
const ROUNDS = 5;
const AT_WORK = 64;

export async function* measureRouter(options: RouterOptions): AsyncIterable<BenchResult> {
  const { calls, inFlight, perSecond, onProgress } = options;
  onProgress("deciding");
  yield* decisions();
  await using world = await openRouterWorld();
  onProgress("warming up");
  for (let round = 0; round < 3; round++) await world.measure({ way: "call", calls: 1_000, inFlight });
  onProgress(`${calls} calls, ${inFlight} in flight`);
  const cpuBefore = world.cpuMs();
  const full = await world.measure({ way: "call", calls, inFlight });
  const cpuMs = world.cpuMs() - cpuBefore;
  const raw = await world.measure({ way: "raw", calls, inFlight });
  const stalled = full.latenciesMs.filter((ms) => ms > STALL_MS).length;
  yield comparedResult({ bench, metric: "external_stalls", unit: "calls" }, [stalled]);
  yield* percentiles("external", full, raw);
  yield comparedResult({ bench, metric: "external_per_s", unit: "1/s" }, [rateOf(full)], [rateOf(raw)]);
  yield comparedResult({ bench, metric: "external_cpu_ms", unit: "ms" }, [cpuMs / calls]);
  onProgress(`${calls} calls that nobody outside answers, ${AT_WORK} in flight`);
  for (const way of ["internal", "provider"] as const) yield await routerCost(world, way, calls);
  onProgress(`${AT_ONCE} calls at once, ${ROUNDS} times`);
  const rounds: Record<"call" | "raw", number[]> = { call: [], raw: [] };
  for (let round = 0; round < ROUNDS; round++) {
    for (const way of ["call", "raw"] as const) {
      rounds[way].push((await world.measure({ way, calls: AT_ONCE, inFlight: AT_ONCE })).tookMs);
    }
  }
  yield comparedResult({ bench, metric: "external_200_at_once_ms", unit: "ms" }, rounds.call, rounds.raw);
  onProgress(`${calls} calls, ${perSecond} begin each second`);
  const paced = await world.measure({ way: "call", calls, inFlight, perSecond });
  yield* percentiles("external_paced", paced, await world.measure({ way: "raw", calls: 1_000, inFlight, perSecond }));
}

/** Each beside the smallest: the catalogue may cost the processor's caches something, and nothing else. */
async function* decisions(): AsyncIterable<BenchResult> {
  const fewest = await measureDecisions({ tools: 10, agents: 1 });
  yield comparedResult({ bench, metric: "decide_10_tools_1_agent_us", unit: "µs" }, fewest);
  for (const [metric, tools, agents] of [
    ["decide_10_tools_100_agents_us", 10, 100],
    ["decide_1000_tools_1_agent_us", 1_000, 1],
    ["decide_us", 1_000, 100],
  ] as const) {
    yield comparedResult({ bench, metric, unit: "µs" }, await measureDecisions({ tools, agents }), fewest);
  }
}

/** What the router itself uses of a processor for a call. */
async function routerCost(world: RouterWorld, way: "internal" | "provider", calls: number): Promise<BenchResult> {
  await world.measure({ way, calls: Math.ceil(calls / 2), inFlight: AT_WORK });
  const before = world.routerCpuMs();
  await world.measure({ way, calls, inFlight: AT_WORK });
  const usedUs = (world.routerCpuMs() - before) * 1_000;
  return comparedResult({ bench, metric: `${way}_router_cpu_us`, unit: "µs" }, [usedUs / calls]);
}

function* percentiles(name: string, one: Report, baseline: Report): Iterable<BenchResult> {
  for (const [part, share] of [
    ["p50", 0.5],
    ["p95", 0.95],
  ] as const) {
    const [value, beside] = [one, baseline].map(({ latenciesMs }) => quantileOf(latenciesMs, share));
    yield comparedResult({ bench, metric: `${name}_${part}_ms`, unit: "ms" }, [value ?? 0], [beside ?? 0]);
  }
}

function rateOf({ latenciesMs, tookMs }: Report): number {
  return (latenciesMs.length * 1_000) / tookMs;
}
