import { expect, test } from "vitest";
import { measureParked } from "../../../bench/parked/measure-parked.ts";

test("LOOP-16 runs that wait for their client are parked, weighed and woken, as the measurement does with 100,000 of them", {
  timeout: 180_000,
}, async () => {
  const [runs, warmUp] = [440, 40];
  const rows = await Array.fromAsync(measureParked({ runs, warmUp, wakes: 10, idleMs: 1_000, settleMs: 500 }));
  const metrics = rows.map(({ metric }) => metric);
  expect(metrics).toEqual(expect.arrayContaining(["parked_orchestrator_mb", "broker_disk_mb", "wake_p50_ms"]));
  for (const { value } of rows) expect(value).toSatisfy(Number.isFinite);
  const heaps = rows.filter(({ metric }) => metric.endsWith("_heap_mb"));
  expect(heaps.length).toBeGreaterThan(3);
  for (const { metric, value } of heaps)
    expect(value / (runs - warmUp), `${metric}: MiB of a parked run, in lists of bounded length`).toBeLessThan(
      8 / 1_024,
    );
});
