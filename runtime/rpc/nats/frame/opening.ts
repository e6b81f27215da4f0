import { Code } from "@connectrpc/connect";
import { messageFromUnknown } from "../../../failure/failure.ts";
import { notSent } from "../call/delivery.ts";
import type { Credit } from "./frame.ts";
import { HeaderKey, readMetadata } from "./headers.ts";

/** What is read of the message that opens a call. */
export interface OpeningMessage {
  readonly data: Uint8Array;
  readonly headers?: Iterable<[string, string[]]> | undefined;
  readonly reply?: string | undefined;
}

/** What the clock of that name showed. */
export interface Sent {
  readonly clock: string;
  readonly ms: number;
}

/** What the message that opens a call says, besides the request. */
export interface Opening {
  /** When it was sent, by a clock of its sender's. */
  readonly sent: Sent | undefined;
  readonly timeoutMs: number | undefined;
  /** How long the caller still waits for the bus. */
  readonly patienceMs: number | undefined;
  readonly credit: Credit | undefined;
  /** The request goes on in frames. */
  readonly hasMore: boolean;
  readonly header: Headers;
}

/** The opening of a call, or what is wrong with its headers: the fault names the header. Those of other clients may be anything. */
export function parseOpening(message: OpeningMessage): Opening | string {
  try {
    const opening = new ParsedOpening(message.headers ?? []);
    for (const [key, values] of message.headers ?? []) {
      if (!OWN_KEYS.has(key)) continue;
      const [value = ""] = values;
      if (values.length > 1) return `the header ${key} is there ${values.length} times`;
      if (!opening.take(key, value)) return `the header ${key} cannot be read: "${value.slice(0, MOST_SHOWN)}"`;
    }
    return opening;
  } catch (error) {
    return `the headers cannot be read: ${messageFromUnknown(error)}`;
  }
}

const MOST_SHOWN = 40;
const OWN_KEYS: ReadonlySet<string> = new Set([
  HeaderKey.sent,
  HeaderKey.timeout,
  HeaderKey.patience,
  HeaderKey.credit,
  HeaderKey.more,
]);

/** Metadata is read when somebody asks for it. */
class ParsedOpening implements Opening {
  sent: Sent | undefined;
  timeoutMs: number | undefined;
  patienceMs: number | undefined;
  credit: Credit | undefined;
  hasMore = false;
  readonly #entries: Iterable<[string, string[]]>;
  #header: Headers | undefined;

  constructor(entries: Iterable<[string, string[]]>) {
    this.#entries = entries;
  }

  get header(): Headers {
    this.#header ??= metadataFrom(this.#entries);
    return this.#header;
  }

  /** Takes a header of the protocol's own; says whether it can be read. */
  take(key: string, value: string): boolean {
    if (key === HeaderKey.credit) {
      this.credit = creditFrom(value);
      return this.credit !== undefined;
    }
    if (key === HeaderKey.more) {
      this.hasMore = value === "1";
      return this.hasMore;
    }
    if (key === HeaderKey.sent) {
      this.sent = sentFrom(value);
      return this.sent !== undefined;
    }
    if (!INTEGER.test(value)) return false;
    this[key === HeaderKey.patience ? "patienceMs" : "timeoutMs"] = Number(value);
    return true;
  }
}

function metadataFrom(entries: Iterable<[string, string[]]>): Headers {
  const header = new Headers();
  try {
    readMetadata(entries, header);
  } catch (cause) {
    throw notSent(`the metadata cannot be read: ${messageFromUnknown(cause)}`, Code.InvalidArgument, cause);
  }
  return header;
}

const INTEGER = /^\d{1,15}$/;
const CREDIT = /^(\d{1,15}) (\d{1,15})$/;
const SENT = /^([\w-]{1,32}) (\d{1,15})$/;
const MOST_CREDIT = 0xffffffff;

function creditFrom(text: string): Credit | undefined {
  const found = CREDIT.exec(text);
  if (!found) return undefined;
  const [messages, bytes] = [Number(found[1]), Number(found[2])];
  return messages <= MOST_CREDIT && bytes <= MOST_CREDIT ? { messages, bytes } : undefined;
}

function sentFrom(text: string): Sent | undefined {
  const found = SENT.exec(text);
  return found ? { clock: found[1]!, ms: Number(found[2]) } : undefined;
}
