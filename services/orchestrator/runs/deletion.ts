import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import type { AuditTrail } from "#runtime/audit/trail.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { type Caller, principalOf } from "#runtime/rpc/identity.ts";
import type { Retention } from "../sessions/retention/retention.ts";
import { type ExistingRunOptions, openExisting } from "./existing-run.ts";

export interface DeletionOptions extends Pick<ExistingRunOptions, "log" | "clock"> {
  readonly retention: Pick<Retention, "removeLog">;
  readonly audit: AuditTrail["record"];
  /** Tells those who follow runs. */
  readonly tellDeleted: (deleted: { readonly runId: string; readonly principal: string }) => void;
}

/** Its place in the session's queue stays, as that of a run that was removed. */
export async function deleteRun(options: DeletionOptions, runId: string, caller: Caller): Promise<void> {
  const { phase, accepted } = (await openExisting(options, runId, caller)).state;
  if (phase.kind !== "ended") {
    const metadata = { run_id: runId, retry_in_ms: "1000" };
    refuse("failed_precondition", `run ${runId} goes on: cancel it first`, { reason: "RUN_NOT_ENDED", metadata });
  }
  await options.retention.removeLog(runId);
  options.tellDeleted({ runId, principal: accepted.principal });
  const by = principalOf(caller);
  const { sessionId, agent } = accepted;
  options.audit({ kind: AuditKind.DELETED, agent, sessionId, runId, message: `run ${runId} was deleted by ${by}` }, by);
}
