import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { HealthState, McpConnectionSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { RunSchema, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { durationText, linesOfMoment, type Moment } from "./top-picture.ts";

const atMs = Date.UTC(2026, 10, 24, 12, 30, 5);
const run = (id: string, agoMs: number, more: MessageInitShape<typeof RunSchema> = {}) =>
  create(RunSchema, {
    ...{ id, agent: "demo", state: RunState.IN_PROGRESS, createTime: timestampFromMs(atMs - agoMs) },
    ...(more as object),
  });
const quiet: Moment = {
  ...{ url: "http://127.0.0.1:7480", atMs, services: new Map([["toolbus.run.v1.RunService", true]]) },
  ...{ runs: [], isMore: false, failed: [], waiting: 0, connections: [] },
};

test("PROD-2 a quiet suite is told in few lines", () => {
  expect(linesOfMoment(quiet)).toEqual([
    "toolbus http://127.0.0.1:7480  12:30:05 UTC  all services serve",
    "runs  0 in progress  0 queued  0 wait for outputs  0 wait for people (toolbus answers)  0 failed in an hour",
    "mcp   0 connections  0 unhealthy",
    "",
    "no run goes on",
  ]);
});

test("PROD-2 what hangs stands first, and what is wrong says why", () => {
  const lines = linesOfMoment({
    ...quiet,
    services: new Map([
      ["toolbus.run.v1.RunService", true],
      ["toolbus.space.v1.SpaceService", false],
    ]),
    runs: [run("young", 5_000), run("old", 125_000, { draft: { text: "so\nfar" }, turnCount: 3 })],
    failed: [run("lost", 9_000, { state: RunState.FAILED, error: "no\nmodel" })],
    waiting: 2,
    connections: [create(McpConnectionSchema, { server: "files", health: HealthState.UNHEALTHY, reason: "it exited" })],
  });
  expect(lines[0]).toContain("not there: toolbus.space.v1.SpaceService");
  expect(lines[1]).toBe(
    "runs  2 in progress  0 queued  0 wait for outputs  2 wait for people (toolbus answers)  1 failed in an hour",
  );
  expect(lines[2]).toBe("mcp   1 connections  1 unhealthy  files: it exited");
  expect(lines.slice(4).map((line) => line.split(/ {2,}/))).toEqual([
    ["RUN", "AGENT", "STATUS", "TURNS", "TOKENS", "FOR", "SAYS"],
    ["old", "demo", "in progress", "3", "0", "2m05s", "so far"],
    ["young", "demo", "in progress", "0", "0", "5s"],
    [""],
    ["FAILED", "AGENT", "WHEN", "WHY"],
    ["lost", "demo", "9s ago", "no model"],
  ]);
});

test.each([
  [-5, "0s"],
  [59_999, "59s"],
  [60_000, "1m00s"],
  [7_620_000, "2h07m"],
])("%d ms are %s", (ms, text) => {
  expect(durationText(ms)).toBe(text);
});
