import { Failure, isFailure } from "#runtime/failure/failure.ts";

/** Keeps what a session's call answered and a message does not hold, and gives the reference under which it can be read. */
export type StoreResult = (sessionId: string, whole: string | Uint8Array) => Promise<string>;

/** For what the store has no room for: what is given in its place. A call that has happened has its result all the same. */
export function whereFull<T>(instead: (full: Failure) => T): (error: unknown) => T {
  return (error) => {
    if (isFailure(error, "resource_exhausted")) return instead(error);
    throw error;
  };
}

/** A store for the result of a call that must not happen twice, and has: one that does not answer is asked once, and counts as full. */
export function fullWhereSilent(store: StoreResult): StoreResult {
  let silence: Failure | undefined;
  return async (sessionId, whole) => {
    if (silence) throw silence;
    return store(sessionId, whole).catch((error: unknown) => {
      if (isFailure(error, "unavailable"))
        silence = new Failure("resource_exhausted", error.message, { reason: "STORE_FULL", cause: error });
      throw silence ?? error;
    });
  };
}
