/** What a frame says. Frames go to inboxes; the message that opens a call is none. */
export const FrameKind = { data: 1, end: 2, error: 3, cancel: 4, credit: 5, heartbeat: 6 } as const;
export type FrameKind = (typeof FrameKind)[keyof typeof FrameKind];

/** `more`: further parts of this message follow. `end`: nothing follows, this was the sender's last message. */
export const FrameFlag = { none: 0, more: 1, end: 2 } as const;

export interface Frame {
  readonly kind: FrameKind;
  readonly flags: number;
  /** Counts all frames of one direction of one call, from 0. */
  readonly sequence: number;
  readonly body: Uint8Array;
}

export interface Credit {
  readonly messages: number;
  readonly bytes: number;
}

/** kind, flags, and four bytes of sequence, most significant first. */
export const FRAME_HEAD_BYTES = 6;
const LAST_KIND = FrameKind.heartbeat;
const NO_BODY = new Uint8Array(0);

export function bytesFromFrame(
  kind: FrameKind,
  flags: number,
  sequence: number,
  body: Uint8Array = NO_BODY,
): Uint8Array {
  const bytes = Buffer.allocUnsafe(FRAME_HEAD_BYTES + body.length);
  bytes[0] = kind;
  bytes[1] = flags;
  bytes.writeUInt32BE(sequence >>> 0, 2);
  bytes.set(body, FRAME_HEAD_BYTES);
  return bytes;
}

/** The frame in the bytes, whose body shares their memory, or undefined when they hold none. */
export function parseFrame(bytes: Uint8Array): Frame | undefined {
  const kind = bytes[0] as FrameKind;
  if (bytes.length < FRAME_HEAD_BYTES || kind < FrameKind.data || kind > LAST_KIND) return undefined;
  const sequence = ((bytes[2]! << 24) | (bytes[3]! << 16) | (bytes[4]! << 8) | bytes[5]!) >>> 0;
  return { kind, flags: bytes[1]!, sequence, body: bytes.subarray(FRAME_HEAD_BYTES) };
}

export function bytesFromCredit(credit: Credit): Uint8Array {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeUInt32BE(credit.messages, 0);
  bytes.writeUInt32BE(credit.bytes, 4);
  return bytes;
}

/** Of a body of 8 bytes, which `faultOf` sees to. */
export function parseCredit(body: Uint8Array): Credit {
  const view = new DataView(body.buffer, body.byteOffset, 8);
  return { messages: view.getUint32(0), bytes: view.getUint32(4) };
}
