import { refuseLocally } from "#runtime/failure/local-failure.ts";

/** For a model that cannot be asked as things are configured: no further try mends that. Tests tell cases apart by `kind`. */
export function refuseModel(kind: string, message: string, cause?: unknown): never {
  return refuseLocally("failed_precondition", message, { kind, cause });
}
