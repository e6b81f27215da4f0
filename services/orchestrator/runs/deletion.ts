import { refuse } from "#runtime/failure/failure.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import type { Retention } from "../sessions/retention/retention.ts";
import { type ExistingRunOptions, openExisting } from "./existing-run.ts";

export interface DeletionOptions extends Pick<ExistingRunOptions, "log" | "clock"> {
  readonly retention: Pick<Retention, "removeLog">;
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
}
