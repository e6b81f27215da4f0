import { Failure, type FailureCode, type ReasonName } from "./failure.ts";

/**
 * Whether who failed a call has said that nothing of it was started: by the code of a refusal, or by a reason that says so. A model is
 * told so, and not that the outcome is unknown; everything else may have had its effect.
 */
export function startedNothing(error: unknown): boolean {
  if (!(error instanceof Failure) || error.reason === "OUTCOME_UNKNOWN") return false; // as where an answer was too large
  return REFUSALS.has(error.code) || NOT_STARTED.has(error.reason);
}

const REFUSALS: ReadonlySet<string> = new Set([
  "invalid_argument",
  "not_found",
  "failed_precondition",
  "permission_denied",
  "unauthenticated",
  "unimplemented",
  "resource_exhausted",
] satisfies FailureCode[]);

const NOT_STARTED: ReadonlySet<string | undefined> = new Set([
  "CALL_NOT_STARTED",
  "MCP_SERVER_UNAVAILABLE",
  "WORKER_BACKED_OFF",
  "WORKER_STOPPED",
] satisfies ReasonName[]);
