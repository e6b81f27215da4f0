// The frame: kind, flags, sequence number, body. Written from docs/connect-over-nats.md, "Frames".

export const Kind = { data: 1, end: 2, error: 3, cancel: 4, credit: 5, heartbeat: 6 } as const;

const kinds: readonly unknown[] = Object.values(Kind);
const moreFlag = 1;
const endFlag = 2;
const headBytes = 6;

export interface Frame {
  readonly kind: number;
  readonly sequence: number;
  /** Further parts of this message follow. */
  readonly more: boolean;
  /** Nothing follows. */
  readonly end: boolean;
  readonly body: Uint8Array;
}

export function encodeFrame({ kind, sequence, more, end, body }: Frame): Uint8Array {
  const bytes = new Uint8Array(headBytes + body.length);
  bytes[0] = kind;
  bytes[1] = (more ? moreFlag : 0) | (end ? endFlag : 0);
  new DataView(bytes.buffer).setUint32(2, sequence);
  bytes.set(body, headBytes);
  return bytes;
}

/** Undefined if it is no frame. */
export function decodeFrame(bytes: Uint8Array): Frame | undefined {
  if (bytes.length < headBytes || !kinds.includes(bytes[0])) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const flags = view.getUint8(1);
  return {
    kind: view.getUint8(0),
    sequence: view.getUint32(2),
    more: (flags & moreFlag) !== 0,
    end: (flags & endFlag) !== 0,
    body: bytes.subarray(headBytes),
  };
}

export interface Credit {
  readonly messages: number;
  readonly bytes: number;
}

export function encodeCredit({ messages, bytes }: Credit): Uint8Array {
  const body = new Uint8Array(8);
  const view = new DataView(body.buffer);
  view.setUint32(0, messages);
  view.setUint32(4, bytes);
  return body;
}

export function decodeCredit(body: Uint8Array): Credit {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  return { messages: view.getUint32(0), bytes: view.getUint32(4) };
}

/** What a server may send when the opening says nothing of it. */
export const creditUnsaid: Credit = { messages: 1, bytes: 262_144 };

/** The value of `Rpc-Credit`. */
export function parseCredit(text: string): Credit {
  const found = /^(\d+) (\d+)$/.exec(text);
  return found ? { messages: Number(found[1]), bytes: Number(found[2]) } : creditUnsaid;
}
