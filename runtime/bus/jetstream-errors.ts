import { JetStreamApiError } from "@nats-io/jetstream";
import { errors } from "@nats-io/transport-node";
import { Failure } from "../failure/failure.ts";

/** The server's codes that the suite tells apart. */
const codes = {
  wrongLastSequence: 10071,
  /** In a cluster: an append in flight, one's own included, has not been decided yet. */
  wrongLastSequenceUnknown: 10164,
  messageTooLarge: 10054,
  storeFailed: 10077,
};

export function isConflict(error: unknown): boolean {
  if (!(error instanceof JetStreamApiError)) return false;
  return error.code === codes.wrongLastSequence || error.code === codes.wrongLastSequenceUnknown;
}

/** Neither a yes nor a no that stays: the server is gone, is starting, has no leader, or was too slow. */
export function isPassing(error: unknown): boolean {
  if (error instanceof Failure) return false;
  if (error instanceof JetStreamApiError) return error.status >= 503 && failureFromRefusal(error) === undefined;
  return !(error instanceof errors.PermissionViolationError) && !(error instanceof errors.InvalidSubjectError);
}

/** The server's refusal of a message, as a failure; undefined when it is none. */
export function failureFromRefusal(error: unknown): Failure | undefined {
  if (!(error instanceof JetStreamApiError)) return undefined;
  if (error.code === codes.messageTooLarge) {
    return new Failure("invalid_argument", "the message is larger than its store takes", {
      reason: "MESSAGE_TOO_LARGE",
      cause: error,
    });
  }
  const isFull = error.code === codes.storeFailed && /maximum|exceeded|resource/i.test(error.message);
  if (!isFull) return undefined;
  return new Failure("resource_exhausted", `the store is full: ${error.message}`, {
    reason: "STORE_FULL",
    cause: error,
  });
}
