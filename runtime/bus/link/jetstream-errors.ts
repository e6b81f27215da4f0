import { JetStreamApiError, JetStreamError } from "@nats-io/jetstream";
import { errors } from "@nats-io/transport-node";
import { Failure } from "../../failure/failure.ts";

/** The server's codes that the suite tells apart. */
const codes = {
  wrongLastSequence: 10071,
  /** In a cluster: an append in flight, one's own included, has not been decided yet. */
  wrongLastSequenceUnknown: 10164,
  messageTooLarge: 10054,
  storeFailed: 10077,
  /** All stores together have what the server or the account may store. */
  resourcesExceeded: [10002, 10023, 10028, 10047],
};

export function isConflict(error: unknown): boolean {
  if (!(error instanceof JetStreamApiError)) return false;
  return error.code === codes.wrongLastSequence || error.code === codes.wrongLastSequenceUnknown;
}

/**
 * Neither a yes nor a no that stays: the server is gone, is starting, has no leader, or was too slow. What is not known to
 * be of that kind is not: a mistake of the program would be repeated for ever.
 */
export function isTransient(error: unknown): boolean {
  if (error instanceof JetStreamApiError) return error.status >= 503 && !isStoreFull(error);
  if (error instanceof JetStreamError) return !("code" in error) || error.code !== badRequest;
  if (error instanceof errors.RequestError) return !(error.cause instanceof errors.PermissionViolationError);
  if (transientErrors.some((kind) => error instanceof kind)) return true;
  if (error instanceof DOMException) return error.name === "TimeoutError"; // an attempt's own time
  return error instanceof Error && error.name === notEnabled;
}

const badRequest = 400;

/** The client's word for no answer, as from a server that is starting; `openBus` refuses one that never has JetStream. */
const notEnabled = "JetStreamNotEnabled";

const transientErrors = [
  errors.TimeoutError,
  errors.NoRespondersError,
  errors.ConnectionError,
  errors.ClosedConnectionError,
  errors.DrainingConnectionError,
  errors.ProtocolError,
  errors.AuthorizationError, // of a server that comes back half configured
  errors.UserAuthenticationExpiredError,
];

/** The server's refusal of a message for a store, as a failure; undefined when it is none. */
export function failureFromRefusal(error: unknown, store: string): Failure | undefined {
  if (!(error instanceof JetStreamApiError)) return undefined;
  if (error.code === codes.messageTooLarge) {
    return new Failure("invalid_argument", "the message is larger than its store takes", {
      reason: "MESSAGE_TOO_LARGE",
      cause: error,
    });
  }
  if (!isStoreFull(error)) return undefined;
  return new Failure("resource_exhausted", `the store is full: ${store}: ${error.message}`, {
    reason: "STORE_FULL",
    metadata: { store },
    cause: error,
  });
}

function isStoreFull(error: JetStreamApiError): boolean {
  if (codes.resourcesExceeded.includes(error.code)) return true;
  return error.code === codes.storeFailed && /maximum|exceeded|resource|space/i.test(error.message);
}
