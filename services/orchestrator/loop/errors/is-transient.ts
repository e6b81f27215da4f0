import { Failure } from "#runtime/failure/failure.ts";

/** Whether a run that met this error is put back, to be taken up again. */
export function isTransient(error: unknown): boolean {
  return error instanceof Failure && (error.code === "unavailable" || error.code === "resource_exhausted");
}
