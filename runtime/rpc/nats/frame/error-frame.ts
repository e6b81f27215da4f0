import { Code, ConnectError } from "@connectrpc/connect";
import { errorFromJsonBytes, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import type { MsgHdrs } from "@nats-io/nats-core";
import { shortenedError } from "../../../failure/connect.ts";
import { type Delivery, deliveryOf, withDelivery, withoutDelivery } from "../call/delivery.ts";
import { FRAME_HEAD_BYTES } from "./frame.ts";
import { HeaderKey, readMetadata, WireHeaders } from "./headers.ts";

export interface ErrorMetadata {
  readonly header?: Headers | undefined;
  readonly trailer?: Headers | undefined;
  readonly delivery?: Delivery | undefined;
}

/** The body and headers of an error frame; an error too big for a message goes without its details and metadata, but with its reason. */
export function fittingError(
  maxPayloadBytes: number,
  error: ConnectError,
  metadata: ErrorMetadata = {},
): { body: Uint8Array; headers: WireHeaders } {
  const whole = { body: bytesFromError(error), headers: headersFromError(error, metadata) };
  if (whole.body.length + whole.headers.encode().length + FRAME_HEAD_BYTES <= maxPayloadBytes) return whole;
  const short = shortenedError(error, 1_000);
  return { body: bytesFromError(short), headers: headersFromError(short, { delivery: metadata.delivery }) };
}

/** An error as Connect writes it: code, message and details as JSON. */
function bytesFromError(error: ConnectError): Uint8Array {
  return errorToJsonBytes(error, undefined);
}

/** Metadata of the response, that of the error among the trailers, and what is known of the delivery. */
function headersFromError(error: ConnectError, metadata: ErrorMetadata): WireHeaders {
  const headers = new WireHeaders();
  if (metadata.delivery) headers.add(HeaderKey.delivery, metadata.delivery);
  if (metadata.header) headers.addMetadata(metadata.header);
  const trailers = new Headers(metadata.trailer);
  error.metadata.forEach((value, key) => {
    trailers.set(key, value);
  });
  return headers.addTrailers(withoutDelivery(trailers));
}

/**
 * The error that the other end answered; its metadata is that of headers and trailers together. That it has not started the
 * call is believed only of its first frame: after another it has begun, whatever it says.
 */
export function errorFromFrame(body: Uint8Array, headers: MsgHdrs | undefined, isFirstFrame: boolean): ConnectError {
  const metadata = new Headers();
  readMetadata(headers, metadata, metadata);
  withoutDelivery(metadata);
  const error = parseError(body, metadata);
  if (headers?.get(HeaderKey.delivery) !== "NOT_SENT") return error;
  return withDelivery(error, isFirstFrame ? "NOT_SENT" : "UNKNOWN");
}

function parseError(body: Uint8Array, metadata: Headers): ConnectError {
  const fallback = new ConnectError("the other end answered with an error that cannot be read", Code.Unknown);
  try {
    return errorFromJsonBytes(body, metadata, fallback);
  } catch {
    return fallback; // which is what the parser throws
  }
}

/**
 * An error for the wire, whatever a handler threw; what is no ConnectError shows nothing of itself, as in Connect. Nothing is
 * added here: the reason of the contract comes from the interceptor of failures.
 */
export function errorFromThrown(thrown: unknown): ConnectError {
  if (thrown instanceof ConnectError) return thrown;
  return new ConnectError("internal error", Code.Internal, undefined, undefined, thrown);
}

/**
 * Whether the transport may send the request again by itself: a server refused it before starting it, for now. Who took it for
 * late was slow, or errs: its caller still waits.
 */
export function isRefusedForNow(error: unknown): error is ConnectError {
  return (
    error instanceof ConnectError &&
    error.isWireError &&
    (error.code === Code.Unavailable || error.code === Code.DeadlineExceeded) &&
    deliveryOf(error) === "NOT_SENT"
  );
}
