import { Code, ConnectError } from "@connectrpc/connect";
import { failureCodeFromCode } from "../../../failure/code.ts";
import { connectError } from "../../../failure/connect.ts";
import { reasonFromCode } from "../../../failure/error-detail.ts";

/**
 * What is known about a call that failed without an answer.
 * NOT_SENT: no handler has started, nor will one; calling again is safe. UNKNOWN: a handler may have started.
 */
export type Delivery = "NOT_SENT" | "UNKNOWN";

const DELIVERY_KEY = "toolbus-delivery";

/** The delivery of a failed call, or undefined when the error is the handler's own answer. */
export function deliveryOf(error: unknown): Delivery | undefined {
  if (!(error instanceof ConnectError)) return undefined;
  const value = error.metadata.get(DELIVERY_KEY);
  return value === "NOT_SENT" || value === "UNKNOWN" ? value : undefined;
}

/** Whether the server of the call was lost, also in the middle of the request (NOT_SENT by then): it may be there, and another one serves. */
export function wasLost(error: unknown): error is ConnectError {
  if (!(error instanceof ConnectError) || error.isWireError || error.code !== Code.Unavailable) return false;
  return deliveryOf(error) === "UNKNOWN" || deliveryOf(error.cause) === "UNKNOWN";
}

/** Says on an error what is known about the delivery of its call; gives the error back. */
export function withDelivery(error: ConnectError, delivery: Delivery): ConnectError {
  error.metadata.set(DELIVERY_KEY, delivery);
  return error;
}

/** Takes away what an error says about another call's delivery: a handler's answer says nothing about its own. */
export function withoutDelivery(metadata: Headers): Headers {
  metadata.delete(DELIVERY_KEY);
  return metadata;
}

/** To whoever called the caller, NOT_SENT would be untrue: the reason says only what stays true from hop to hop. */
export function notSent(message: string, code: Code = Code.Unavailable, cause?: unknown): ConnectError {
  const isUnreadable = code === Code.InvalidArgument; // of a request, the protocol itself judges nothing but its form
  const reason = isUnreadable ? "REQUEST_MALFORMED" : (reasonFromCode(code) ?? "SERVICE_UNAVAILABLE");
  return withDelivery(connectError(failureCodeFromCode(code), message, { reason, cause }), "NOT_SENT");
}

export function unknownOutcome(message: string, code: Code = Code.Unavailable, cause?: unknown): ConnectError {
  const reason = code === Code.Canceled ? "CANCELED" : "OUTCOME_UNKNOWN";
  return withDelivery(connectError(failureCodeFromCode(code), message, { reason, cause }), "UNKNOWN");
}
