import { headers, type MsgHdrs } from "@nats-io/transport-node";
import { Failure } from "../../failure/failure.ts";
import type { Bus } from "../bus.ts";
import { maxMessageBytesOfSubject } from "../declarations/streams-of-subjects.ts";

export interface SizedMessage {
  subject: string;
  payload: Uint8Array | string;
  headers?: MsgHdrs | undefined;
}

/** What a store takes of one message: payload and headers together. The server may be configured to take less. */
export function maxMessageBytes(bus: Pick<Bus, "connection">, subject: string): number {
  return Math.min(maxMessageBytesOfSubject(subject), bus.connection.info?.max_payload ?? Number.POSITIVE_INFINITY);
}

/**
 * Throws `invalid_argument` with reason `MESSAGE_TOO_LARGE` for a message that will never be stored. The client would refuse
 * some of them by itself, with an error that looks like any other.
 */
export function refuseTooLarge(bus: Pick<Bus, "connection">, message: SizedMessage): void {
  const limit = maxMessageBytes(bus, message.subject);
  const { payload, headers: fields = headers() } = message;
  const bytes = Buffer.byteLength(payload) + Buffer.byteLength(fields.toString());
  if (bytes > limit) throw tooLarge(bytes, limit);
}

function tooLarge(bytes: number, limit: number): Failure {
  return new Failure("invalid_argument", `the message has ${bytes} bytes, and its store takes ${limit} at most`, {
    reason: "MESSAGE_TOO_LARGE",
    metadata: { bytes: String(bytes), limit: String(limit) },
  });
}
