import { quantileOf } from "../loop/figures/quantile.ts";
import { medianOf } from "./result.ts";

/** How many calls are under way at a time, and for how long. */
export interface Load {
  readonly inFlight: number;
  readonly durationMs: number;
}

export interface Latencies {
  readonly calls: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  readonly perSecond: number;
}

/** Calls again and again, and says how long a call took. */
export async function measureLatencies(
  call: () => Promise<unknown>,
  { inFlight, durationMs }: Load,
): Promise<Latencies> {
  const latenciesMs: number[] = [];
  const startedAt = performance.now();
  const endsAt = startedAt + durationMs;
  const worker = async () => {
    for (let before = performance.now(); before < endsAt; ) {
      await call();
      const after = performance.now();
      latenciesMs.push(after - before);
      before = after;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  return {
    calls: latenciesMs.length,
    p50Ms: medianOf(latenciesMs),
    p95Ms: quantileOf(latenciesMs, 0.95),
    p99Ms: quantileOf(latenciesMs, 0.99),
    perSecond: (latenciesMs.length * 1_000) / (performance.now() - startedAt),
  };
}
