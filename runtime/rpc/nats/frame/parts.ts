import { Code, type ConnectError } from "@connectrpc/connect";
import { connectError } from "../../../failure/connect.ts";
import { MAX_MESSAGE_BYTES } from "../../handling/messages/assembly.ts";
import { notSent } from "../call/delivery.ts";
import { FRAME_HEAD_BYTES } from "./frame.ts";
import type { WireHeaders } from "./headers.ts";

/**
 * The largest piece that is sent at once, and what each side may send unasked: it bounds how long a message holds up those
 * of other calls, and what a burst of calls puts before a busy process.
 */
const PART_BYTES = 256 * 1024;

/** What may be answered to a unary call whose opening does not say it. */
export const UNARY_CREDIT = { messages: 1, bytes: PART_BYTES };

/** How much of a message fits into one frame beside the given headers; refuses headers that leave no room. */
export function partLimit(maxPayloadBytes: number, headers?: WireHeaders): number {
  const headerBytes = headers?.encode().length ?? 0;
  const room = maxPayloadBytes - headerBytes - FRAME_HEAD_BYTES;
  if (room > 0) return Math.min(PART_BYTES, room);
  throw notSent(
    `metadata of ${headerBytes} bytes is over the limit of ${maxPayloadBytes} bytes of a message`,
    Code.ResourceExhausted,
  );
}

/** Refuses a message that is too big before any of it is sent. */
export function tooBig(what: string, bytes: number): ConnectError | undefined {
  if (bytes <= MAX_MESSAGE_BYTES) return undefined;
  const message = `${what} of ${bytes} bytes is over the limit of ${MAX_MESSAGE_BYTES} bytes`;
  const metadata = { bytes: String(bytes), limit: String(MAX_MESSAGE_BYTES) };
  return connectError("resource_exhausted", message, { reason: "MESSAGE_TOO_LARGE", metadata });
}

export function assertMessageFits(what: string, body: Uint8Array): void {
  const error = tooBig(what, body.length);
  if (error) throw error;
}

/** Each part by itself takes some two hundred bytes, whatever is in it: so many are joined before the others come. */
const MOST_LOOSE = 1_024;

/** Puts the parts of a message together again. */
export class PartAssembler {
  #parts: Uint8Array[] = [];
  #joined = 0;
  #bytes = 0;
  #isWithin = false;

  /** Parts have come, and the last has not. */
  get isWithin(): boolean {
    return this.#isWithin;
  }

  /** The whole message when this was its last part. */
  push(part: Uint8Array, hasMore: boolean): Uint8Array | undefined {
    if (!hasMore && !this.#isWithin) return part;
    const bytes = this.#bytes + part.length;
    if (bytes > MAX_MESSAGE_BYTES) throw tooBig("a message", bytes);
    if (part.length > 0) this.#parts.push(part);
    if (this.#parts.length === this.#joined + MOST_LOOSE)
      this.#joined = this.#parts.push(Buffer.concat(this.#parts.splice(this.#joined)));
    this.#isWithin = hasMore;
    this.#bytes = hasMore ? bytes : 0;
    if (hasMore) return undefined;
    const whole = Buffer.concat(this.#parts, bytes);
    this.#parts = [];
    this.#joined = 0;
    return whole;
  }
}
