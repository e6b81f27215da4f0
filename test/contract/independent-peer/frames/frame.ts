// The frame: kind, flags, sequence number, body. Written from docs/connect-over-nats/README.md, "Frames".

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

/** A frame that came, with all of its flags. */
export interface ReceivedFrame extends Frame {
  readonly flags: number;
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
export function decodeFrame(bytes: Uint8Array): ReceivedFrame | undefined {
  if (bytes.length < headBytes || !kinds.includes(bytes[0])) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const flags = view.getUint8(1);
  return {
    kind: view.getUint8(0),
    sequence: view.getUint32(2),
    flags,
    more: (flags & moreFlag) !== 0,
    end: (flags & endFlag) !== 0,
    body: bytes.subarray(headBytes),
  };
}

/** Why the frame is against FRAME-2 to FRAME-5, or undefined. */
export function faultOf(
  { kind, flags, more, end, body }: ReceivedFrame,
  sender: "client" | "server",
): string | undefined {
  if (flags > (moreFlag | endFlag) || (flags !== 0 && kind !== Kind.data)) return "a flag that does not belong";
  if (more && end) return "a message that goes on and is the last";
  if (kind === Kind.credit && body.length !== 8) return "a credit that has not 8 bytes";
  const bodiless: number[] = [Kind.end, Kind.cancel, Kind.heartbeat];
  if (bodiless.includes(kind) && body.length > 0) return "a body that does not belong";
  const foreign = sender === "client" ? Kind.error : Kind.cancel;
  return kind === foreign ? `a frame that no ${sender} sends` : undefined;
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

const highestCredit = 0xff_ff_ff_ff;

/** The value of `Rpc-Credit`; undefined if it cannot be read. */
export function parseCredit(text: string): Credit | undefined {
  const found = /^(\d{1,15}) (\d{1,15})$/.exec(text);
  if (!found) return undefined;
  const credit = { messages: Number(found[1]), bytes: Number(found[2]) };
  return Math.max(credit.messages, credit.bytes) <= highestCredit ? credit : undefined;
}
