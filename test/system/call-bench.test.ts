import { expect, test } from "vitest";
import { measureCall } from "../../bench/call.ts";

test("a call of a tool is measured over the bus and through the gateway, beside what others do the same with", {
  timeout: 120_000,
}, async () => {
  const rows = await Array.fromAsync(measureCall({ rounds: 1, roundMs: 100, onProgress: () => {} }));
  const compared = rows.filter(({ ratio }) => ratio !== null).map(({ metric }) => metric);
  expect(compared).toEqual(["internal_bus_p50_ms", "mcp_bus_p50_ms", "unary_http_per_s_16"]);
  const alone = rows.filter(({ ratio }) => ratio === null).map(({ metric }) => metric);
  expect(alone).toEqual(["mcp_http_p50_ms", "mcp_http_per_s_16", "call_cpu_us"]);
  for (const { value } of rows) expect(value).toBeGreaterThan(0);
});
