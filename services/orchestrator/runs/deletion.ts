import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { type Audit, auditAct } from "#runtime/audit/trail.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import type { Retention } from "../sessions/retention/retention.ts";
import { type ExistingRunOptions, openExisting } from "./existing-run.ts";

export interface DeletionOptions extends Pick<ExistingRunOptions, "log" | "clock"> {
  readonly retention: Pick<Retention, "removeLog">;
  readonly audit: Audit;
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
  const { sessionId, agent } = accepted;
  auditAct(options.audit, caller, { kind: AuditKind.DELETED, agent, sessionId, runId }, `run ${runId} was deleted`);
}
