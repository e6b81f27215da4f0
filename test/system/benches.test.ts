import { expect, test } from "vitest";
import { measureCall } from "../../bench/call/measure-call.ts";
import { measureMcpDoor } from "../../bench/doors/measure-doors.ts";
import { measureResponses } from "../../bench/doors/responses.ts";
import { measureMcp } from "../../bench/mcp/measure-mcp.ts";
import { measureRelay } from "../../bench/relay/measure-relay.ts";

test("a call of a tool is measured over the bus and through the gateway, beside what others do the same with", async () => {
  const rows = await Array.fromAsync(measureCall({ rounds: 1, roundMs: 100, onProgress: () => {} }));
  const compared = rows.filter(({ ratio }) => ratio !== null).map(({ metric }) => metric);
  expect(compared).toEqual(["internal_bus_p50_ms", "mcp_bus_p50_ms", "unary_http_per_s_16"]);
  const alone = rows.filter(({ ratio }) => ratio === null).map(({ metric }) => metric);
  expect(alone).toEqual(["mcp_http_p50_ms", "mcp_http_per_s_16", "call_cpu_us"]);
  for (const { value } of rows) expect(value).toBeGreaterThan(0);
});

test("a call of a caller's tool is measured alone, among many, and with many sessions held", async () => {
  const rows = await Array.fromAsync(measureRelay({ rounds: 1, roundMs: 100, sessions: 20, onProgress: () => {} }));
  expect(rows.map(({ metric }) => metric)).toEqual([
    "caller_call_p50_ms",
    "caller_call_p95_ms_200",
    "caller_sessions_held",
    "caller_call_p50_ms_of_20",
  ]);
  for (const { value } of rows) expect(value).toBeGreaterThan(0);
});

test("a call of an MCP server's tool is measured beside the SDK's own client, and what a session of one holds", async () => {
  const rows = await Array.fromAsync(measureMcp({ rounds: 1, roundMs: 100, sessions: 2, onProgress: () => {} }));
  expect(rows.map(({ metric }) => metric)).toEqual(["stdio_echo_p50_ms", "http_echo_p50_ms", "sessions_of_stdio_mb"]);
  for (const { value, baseline } of rows) {
    expect(value).toBeGreaterThan(0);
    expect(baseline).toBeGreaterThan(0);
  }
});

test("calls and lists of an MCP client are measured at the gateway's door, beside mcp-proxy and beside a dead server", async () => {
  const rows = await Array.fromAsync(measureMcpDoor({ rounds: 1, roundMs: 100, onProgress: () => {} }));
  expect(rows.map(({ metric }) => metric)).toEqual([
    "mcp_p50_ms_1",
    "mcp_per_s_16",
    "mcp_list_500_ms",
    "mcp_dead_backend_p99_ratio",
  ]);
  for (const { value, baseline } of rows) {
    expect(value).toBeGreaterThan(0);
    expect(baseline).toBeGreaterThan(0);
  }
});

test("a client of responses is measured until its first delta, and many of its streams", async () => {
  const rows = await Array.fromAsync(measureResponses({ rounds: 1, roundMs: 100, onProgress: () => {}, streams: [5] }));
  expect(rows.map(({ metric }) => metric)).toEqual([
    "responses_overhead_ms",
    "responses_delta_cpu_us",
    "responses_streams_held",
  ]);
  for (const { value } of rows) expect(value).toBeGreaterThan(0);
});
