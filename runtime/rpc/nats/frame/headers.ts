import { PlainHeaders } from "#runtime/bus/nats-patches/plain-headers.ts";

/**
 * The protocol's own header keys. They begin with a capital; metadata keys are lower case, always; NATS tells the two apart.
 */
export const HeaderKey = {
  /** Unix time in ms after which a request must not be started: for servers of release 1.0, which want it. Nobody else reads it. */
  expires: "Rpc-Expires",
  /** `<clock> <ms>`: when the request was sent by a clock that nobody sets, which has a name of its own: only differences count. */
  sent: "Rpc-Sent",
  /** The call's time limit in ms, from its sending on. */
  timeout: "Rpc-Timeout",
  /** How many ms the caller still waits for a bus that does not answer; absent: it has not waited yet. */
  patience: "Rpc-Patience",
  /** `<messages> <bytes>`: what the caller takes before it grants more. */
  credit: "Rpc-Credit",
  /** `1`: the request goes on in data frames. */
  more: "Rpc-More",
  /** NOT_SENT on an error frame: no handler was started. */
  delivery: "Rpc-Delivery",
} as const;

const TRAILER_PREFIX = "Trailer-";
const CAPITAL_A = 0x41;
const CAPITAL_Z = 0x5a;

/** Headers with the metadata of calls. */
export class WireHeaders extends PlainHeaders {
  /** Metadata values hold no line breaks: `Headers` has refused them. */
  addMetadata(metadata: Headers): this {
    metadata.forEach((value, key) => {
      this.add(key, value);
    });
    return this;
  }

  addTrailers(metadata: Headers): this {
    metadata.forEach((value, key) => {
      this.add(TRAILER_PREFIX + key, value);
    });
    return this;
  }
}

/** The headers and trailers as one NATS header block; undefined when there is nothing to say. */
export function headersFromMetadata(metadata: {
  header?: Headers | undefined;
  trailer?: Headers | undefined;
}): WireHeaders | undefined {
  const { header, trailer } = metadata;
  if (isEmpty(header) && isEmpty(trailer)) return undefined;
  const headers = new WireHeaders();
  if (header) headers.addMetadata(header);
  if (trailer) headers.addTrailers(trailer);
  return headers;
}

function isEmpty(headers?: Headers): boolean {
  return headers === undefined || headers.keys().next().done === true;
}

/** Adds the metadata of a message to the given header and trailer. */
export function readMetadata(
  headers: Iterable<[string, string[]]> | undefined,
  header: Headers,
  trailer?: Headers,
): void {
  if (headers === undefined) return;
  for (const [key, values] of headers) {
    if (isMetadataKey(key)) for (const value of values) header.append(key, value);
    else if (trailer && key.startsWith(TRAILER_PREFIX)) {
      for (const value of values) trailer.append(key.slice(TRAILER_PREFIX.length), value);
    }
  }
}

/** Metadata keys begin with no capital: `Headers` has made them lower case. */
function isMetadataKey(key: string): boolean {
  const first = key.charCodeAt(0);
  return first < CAPITAL_A || first > CAPITAL_Z;
}
