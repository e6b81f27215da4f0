import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AuditKindSchema } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { HealthState, McpConnectionSchema, McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { createConnectionAudit } from "./connection-audit.ts";

test("ORCH-11 a connection is built, away with its reason, back, and torn down; each is told once", () => {
  const told: unknown[] = [];
  const note = createConnectionAudit(({ kind, tool, agent, sessionId, message }, principal) =>
    told.push([AuditKindSchema.value[kind ?? 0]?.localName, tool, agent, sessionId, principal, message]),
  );
  let health: HealthState = HealthState.UNSPECIFIED;
  let [reason, isClosed] = ["", false];
  const connection = {
    server: create(McpServerSchema, { name: "files" }),
    holder: { sessionId: "s", agent: "a", runId: "" },
    principal: "ada",
    get isClosed() {
      return isClosed;
    },
    status: () => create(McpConnectionSchema, { health, reason, toolCount: 3 }),
  };
  const changes: [HealthState, string][] = [
    [HealthState.UNSPECIFIED, ""],
    [HealthState.HEALTHY, ""],
    [HealthState.DEGRADED, "it answered after 1200 ms"],
    [HealthState.HEALTHY, ""],
    [HealthState.UNHEALTHY, "it exited with 1"],
    [HealthState.UNHEALTHY, "it exited with 1"],
    [HealthState.HEALTHY, ""],
  ];
  for ([health, reason] of changes) note(connection);
  isClosed = true;
  note(connection);
  note(connection);
  expect(told).toEqual([
    ["BUILT", "files", "a", "s", "ada", "connected, 3 tools"],
    ["UNAVAILABLE", "files", "a", "s", "ada", "it exited with 1"],
    ["AVAILABLE", "files", "a", "s", "ada", "connected, 3 tools"],
    ["TORN_DOWN", "files", "a", "s", "ada", "the connection was closed"],
  ]);
});
