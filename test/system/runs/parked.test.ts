import { expect, test } from "vitest";
import { measureParked } from "../../../bench/parked/measure-parked.ts";

test("LOOP-16 runs that wait for their client are parked, weighed and woken, as the measurement does with 100,000 of them", {
  timeout: 180_000,
}, async () => {
  const rows = await Array.fromAsync(measureParked({ runs: 40, warmUp: 10, wakes: 10, idleMs: 1_000, settleMs: 100 }));
  const metrics = rows.map(({ metric }) => metric);
  expect(metrics).toEqual(expect.arrayContaining(["parked_orchestrator_mb", "broker_disk_mb", "wake_p50_ms"]));
  for (const { value } of rows) expect(value).toSatisfy(Number.isFinite);
});
