import { create } from "@bufbuild/protobuf";
import { type Duration, durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  HealthState,
  type McpConnection,
  McpConnectionSchema,
  type McpServer,
} from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { type OfferedTool, OfferedToolSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { type SourceStatus, SourceStatusSchema } from "#gen/toolbus/tool/v1/source_pb.ts";
import type { Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Holder } from "../../servers/key.ts";
import type { LoginNeeded } from "../../servers/login-needed.ts";
import type { About } from "../about.ts";
import type { HealthFinding } from "../health.ts";
import type { Link } from "../opening/link.ts";

export interface ReadyPhase {
  kind: "ready";
  link: Link;
  tools: ReadonlyMap<string, Tool>;
  /** What the last check found; without checks, the state of the connection is the health. */
  finding?: HealthFinding;
}

/** Where a connection stands. Only a failed attempt leaves a reason behind while the next one goes on. */
export type Phase =
  | ReadyPhase
  | { kind: "connecting"; lastFailure?: string; installer?: string; lastWords?: string }
  | { kind: "waiting"; reason: string; untilMs: number; login?: LoginNeeded }
  | { kind: "closed" };

/** Whether there is something to say about the server: it is ready, or known to have failed. */
export function isSettled(phase: Phase): boolean {
  return phase.kind !== "connecting" || phase.lastFailure !== undefined;
}

/** Why the server cannot be used; empty when it can. */
export function reasonOf(phase: Phase): string {
  if (phase.kind === "ready") return "";
  if (phase.kind === "closed") return "the connection is closed";
  if (phase.kind === "waiting") return phase.reason;
  if (phase.lastFailure !== undefined) return phase.lastFailure;
  const { installer, lastWords } = phase;
  const told = lastWords === undefined ? "" : `: ${lastWords}`;
  return `it is starting${installer === undefined ? "" : ` (${installer} may fetch it first)`}${told}`;
}

export function refuseUnavailable(server: string, reason: string): never {
  return refuse("unavailable", `the MCP server ${server} is unavailable: ${reason}`, {
    reason: "MCP_SERVER_UNAVAILABLE",
    metadata: { server },
  });
}

/** What was listed last is offered until there is another list: a server that is away for a moment has its tools still. */
export function offerFromPhase(
  source: string,
  phase: Phase,
  known: { listed: ReadonlyMap<string, Tool>; about: About; timeout: Duration | undefined },
): { tools: OfferedTool[]; status: SourceStatus } {
  const { listed, about, timeout } = known;
  return {
    tools: [...listed.values()].map((tool) =>
      create(OfferedToolSchema, { source, tool: timeout === undefined ? tool : { ...tool, timeout } }),
    ),
    status: create(SourceStatusSchema, {
      source,
      available: phase.kind === "ready",
      reason: reasonOf(phase),
      starting: !isSettled(phase),
      ...about,
    }),
  };
}

export function statusFromPhase(
  phase: Phase,
  about: { id: string; server: McpServer; holder: Holder; instance: string; changedAtMs: number },
): McpConnection {
  const ready = phase.kind === "ready" ? phase : undefined;
  const finding = ready?.finding;
  return create(McpConnectionSchema, {
    id: about.id,
    server: about.server.name,
    ...about.holder,
    health: finding?.health ?? healthOf(phase),
    ...(finding && { latency: durationFromMs(Math.round(finding.latencyMs)) }),
    reason: finding?.reason ?? reasonOf(phase),
    toolCount: ready?.tools.size ?? 0,
    protocolVersion: ready?.link.protocolVersion ?? "",
    instance: about.instance,
    checkTime: timestampFromMs(finding?.checkedAtMs ?? about.changedAtMs),
  });
}

function healthOf(phase: Phase): HealthState {
  if (phase.kind === "ready") return HealthState.HEALTHY;
  return isSettled(phase) ? HealthState.UNHEALTHY : HealthState.UNSPECIFIED;
}
