import { expect, it } from "vitest";
import { measureConsole } from "../../bench/console/measure-console.ts";

it("the console is measured: its paint, its size, a long list, a long answer, an hour", async () => {
  const little = { rounds: 1, runs: 1_000, deltas: 500, auditEvents: 500, onProgress: () => {} };
  const rows = await Array.fromAsync(measureConsole(little));
  const metrics = ["first_paint_ms", "gzip_kb", "rows_10000_scroll_fps", "deltas_per_s", "heap_mb_after_hour"];
  expect(rows.map(({ metric }) => metric)).toEqual(metrics);
  for (const { value } of rows) expect(value).toBeGreaterThan(0);
});
