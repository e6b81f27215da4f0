import type { Credit } from "./frame.ts";
import { HeaderKey, readMetadata } from "./headers.ts";

/** What is read of the message that opens a call. */
export interface OpeningMessage {
  readonly data: Uint8Array;
  readonly headers?: Iterable<[string, string[]]> | undefined;
  readonly reply?: string | undefined;
}

/** What the message that opens a call says, besides the request. */
export interface Opening {
  /** Unix time in ms after which the call must not be started. */
  readonly expires: number;
  readonly timeoutMs: number | undefined;
  readonly credit: Credit | undefined;
  /** The request goes on in frames. */
  readonly hasMore: boolean;
  readonly header: Headers;
}

/** The opening of a call, or undefined when its headers cannot be read. */
export function parseOpening(message: OpeningMessage): Opening | undefined {
  const { headers } = message;
  if (!headers) return undefined;
  const own = new Map<string, string>();
  for (const [key, [value = ""]] of headers) if (OWN_KEYS.has(key)) own.set(key, value);
  const expires = integerFrom(own.get(HeaderKey.expires));
  const timeoutMs = integerFrom(own.get(HeaderKey.timeout));
  const credit = creditFrom(own.get(HeaderKey.credit));
  if (expires === undefined || expires === null || timeoutMs === null || credit === null) return undefined;
  return new ParsedOpening({ expires, timeoutMs, credit, hasMore: own.get(HeaderKey.more) === "1" }, headers);
}

const OWN_KEYS: ReadonlySet<string> = new Set(Object.values(HeaderKey));

/** Metadata is read when somebody asks for it. */
class ParsedOpening implements Opening {
  readonly expires: number;
  readonly timeoutMs: number | undefined;
  readonly credit: Credit | undefined;
  readonly hasMore: boolean;
  readonly #entries: Iterable<[string, string[]]>;
  #header: Headers | undefined;

  constructor(own: Omit<Opening, "header">, entries: Iterable<[string, string[]]>) {
    this.expires = own.expires;
    this.timeoutMs = own.timeoutMs;
    this.credit = own.credit;
    this.hasMore = own.hasMore;
    this.#entries = entries;
  }

  get header(): Headers {
    if (!this.#header) {
      this.#header = new Headers();
      readMetadata(this.#entries, this.#header);
    }
    return this.#header;
  }
}

const INTEGER = /^\d{1,15}$/;

/** Undefined when there is none, null when it cannot be read. */
function integerFrom(text: string | undefined): number | undefined | null {
  if (text === undefined) return undefined;
  return INTEGER.test(text) ? Number(text) : null;
}

function creditFrom(text: string | undefined): Credit | undefined | null {
  if (text === undefined) return undefined;
  const [messages, bytes, ...rest] = text.split(" ").map(integerFrom);
  if (typeof messages !== "number" || typeof bytes !== "number" || rest.length > 0) return null;
  return { messages, bytes };
}
