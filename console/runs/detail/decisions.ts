import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { wordFrom } from "../../parts/words.ts";
import { clientOf } from "../../suite/connection.ts";

/** A recorded call as its run knows it: the suite puts the run in front, as models give ids that are their own only. */
export function callInRun(runId: string, callId: string): string {
  return callId.startsWith(`${runId}_`) ? callId.slice(runId.length + 1) : callId;
}

/** What the policy decided of the calls of a run, by call; nothing for whom the audit trail is not. */
export async function decisionsOf(runId: string, signal: AbortSignal): Promise<Map<string, string>> {
  const { events } = await clientOf(AuditService).listAuditEvents({ filter: { runId }, pageSize: 1_000 }, { signal });
  return new Map(
    events
      .filter(({ callId }) => callId !== "")
      .map(({ callId, kind, rule, message }) => [
        callInRun(runId, callId),
        [wordFrom(AuditKind, kind), rule, message].filter(Boolean).join(" · "),
      ]),
  );
}
