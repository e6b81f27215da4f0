/** A message of a stream: a byte of flags, four of length, the message. */
export const ENVELOPE_HEAD_BYTES = 5;

export const EnvelopeFlag = { none: 0, compressed: 1, end: 2 } as const;

/** The one message of a request that is one envelope without flags; undefined when it is anything else. */
export function onlyMessage(body: Uint8Array): Uint8Array | undefined {
  if (body.length < ENVELOPE_HEAD_BYTES || body[0] !== EnvelopeFlag.none) return undefined;
  const length = new DataView(body.buffer, body.byteOffset, ENVELOPE_HEAD_BYTES).getUint32(1);
  return length === body.length - ENVELOPE_HEAD_BYTES ? body.subarray(ENVELOPE_HEAD_BYTES) : undefined;
}
