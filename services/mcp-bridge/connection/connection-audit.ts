import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { HealthState } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { Audit } from "#runtime/audit/trail.ts";
import type { Connection } from "./connection.ts";

type Audited = Pick<Connection, "server" | "holder" | "principal" | "isClosed" | "status">;

/**
 * ORCH-11: what becomes of a connection goes on the trail: built, away and why, back, torn down. Told at each of its changes,
 * most of which decide nothing.
 */
export function createConnectionAudit(audit: Audit): (connection: Audited) => void {
  const told = new WeakMap<Audited, Finding>();

  return (connection) => {
    const before = told.get(connection);
    const finding = findingOf(connection, before !== undefined);
    if (finding === undefined || (before !== undefined && saysTheSame(before, finding))) return;
    told.set(connection, finding);
    const { sessionId, agent, runId } = connection.holder;
    const principal = sessionId === "" ? "" : connection.principal; // what is shared is nobody's
    audit({ ...finding, sessionId, agent, runId, tool: connection.server.name }, principal);
  };
}

interface Finding {
  kind: AuditKind;
  message: string;
}

/** How many tools a server has, or how fast it is, decides nothing. */
function saysTheSame(one: Finding, other: Finding): boolean {
  return (isUp(one) && isUp(other)) || (one.kind === other.kind && one.message === other.message);
}

function isUp({ kind }: Finding): boolean {
  return kind === AuditKind.BUILT || kind === AuditKind.AVAILABLE;
}

function findingOf(connection: Audited, wasTold: boolean): Finding | undefined {
  if (connection.isClosed) return { kind: AuditKind.TORN_DOWN, message: "the connection was closed" };
  const { health, reason, toolCount } = connection.status();
  if (health === HealthState.UNSPECIFIED) return undefined;
  if (health === HealthState.UNHEALTHY) return { kind: AuditKind.UNAVAILABLE, message: reason };
  return { kind: wasTold ? AuditKind.AVAILABLE : AuditKind.BUILT, message: `connected, ${toolCount} tools` };
}
