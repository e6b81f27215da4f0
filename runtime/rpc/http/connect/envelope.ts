/** A message of a stream: a byte of flags, four of length, the message. */
const HEAD_BYTES = 5;

export const EnvelopeFlag = { none: 0, compressed: 1, end: 2 } as const;

/** The one message of a request that is one envelope without flags; undefined when it is anything else. */
export function onlyMessage(body: Uint8Array): Uint8Array | undefined {
  if (body.length < HEAD_BYTES || body[0] !== EnvelopeFlag.none) return undefined;
  const length = new DataView(body.buffer, body.byteOffset, HEAD_BYTES).getUint32(1);
  return length === body.length - HEAD_BYTES ? body.subarray(HEAD_BYTES) : undefined;
}

export function envelopeOf(flags: number, message: Uint8Array): Uint8Array {
  const envelope = Buffer.allocUnsafe(HEAD_BYTES + message.length);
  envelope[0] = flags;
  envelope.writeUInt32BE(message.length, 1);
  envelope.set(message, HEAD_BYTES);
  return envelope;
}

export const ENVELOPE_HEAD_BYTES = HEAD_BYTES;
