// Metadata in NATS headers: docs/connect-over-nats/README.md, "Metadata".

import { headers, type MsgHdrs } from "nats";

const trailerPrefix = "Trailer-";
const beginsWithCapital = /^[A-Z]/;

export function metadataOf(block: MsgHdrs | undefined): Headers {
  return collect(block, (key) => (beginsWithCapital.test(key) ? undefined : key));
}

export function trailersOf(block: MsgHdrs | undefined): Headers {
  return collect(block, (key) => (key.startsWith(trailerPrefix) ? key.slice(trailerPrefix.length) : undefined));
}

function collect(block: MsgHdrs | undefined, keyFor: (key: string) => string | undefined): Headers {
  const found = new Headers();
  for (const [key, values] of block ?? []) {
    const name = keyFor(key);
    if (name !== undefined) for (const value of values) found.append(name, value);
  }
  return found;
}

export interface Block {
  readonly metadata?: Headers | undefined;
  readonly trailers?: Headers | undefined;
  readonly own?: Readonly<Record<string, string>> | undefined;
}

/** Undefined if there is nothing to say: a frame without metadata has no NATS headers. */
export function toBlock({ metadata, trailers, own = {} }: Block): MsgHdrs | undefined {
  const entries = [
    ...Object.entries(own),
    ...(metadata ?? []),
    ...[...(trailers ?? [])].map(([key, value]) => [trailerPrefix + key, value] as const),
  ];
  if (entries.length === 0) return undefined;
  const block = headers();
  for (const [key, value] of entries) block.append(key, value);
  return block;
}

/** How much of `max_payload` the headers take. */
export function sizeOf(block: MsgHdrs | undefined): number {
  let bytes = 0;
  for (const [key, values] of block ?? []) {
    for (const value of values) bytes += Buffer.byteLength(key) + Buffer.byteLength(value) + 4;
  }
  return bytes + 16;
}
