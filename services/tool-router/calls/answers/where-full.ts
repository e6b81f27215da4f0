import { Failure } from "#runtime/failure/failure.ts";

/** For what the store has no room for: what is given in its place. A call that has happened has its result all the same. */
export function whereFull<T>(instead: (full: Failure) => T): (error: unknown) => T {
  return (error) => {
    if (error instanceof Failure && error.code === "resource_exhausted") return instead(error);
    throw error;
  };
}
