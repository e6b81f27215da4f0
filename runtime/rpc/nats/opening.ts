import type { Credit } from "./frame.ts";
import { HeaderKey, readMetadata } from "./headers.ts";

/** What is read of the message that opens a call. */
export interface OpeningMessage {
  readonly data: Uint8Array;
  readonly headers?: (Iterable<[string, string[]]> & { get(key: string): string }) | undefined;
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
  const headers = message.headers;
  if (!headers) return undefined;
  const expires = integerFrom(headers.get(HeaderKey.expires));
  const timeout = headers.get(HeaderKey.timeout);
  const timeoutMs = timeout === "" ? undefined : integerFrom(timeout);
  const credit = headers.get(HeaderKey.credit);
  const parsedCredit = credit === "" ? undefined : creditFrom(credit);
  if (expires === undefined) return undefined;
  if (timeout !== "" && timeoutMs === undefined) return undefined;
  if (credit !== "" && parsedCredit === undefined) return undefined;
  const header = new Headers();
  readMetadata(headers, header);
  return { expires, timeoutMs, credit: parsedCredit, hasMore: headers.get(HeaderKey.more) === "1", header };
}

const INTEGER = /^\d{1,15}$/;

function integerFrom(text: string): number | undefined {
  return INTEGER.test(text) ? Number(text) : undefined;
}

function creditFrom(text: string): Credit | undefined {
  const [messages, bytes, ...rest] = text.split(" ").map(integerFrom);
  if (messages === undefined || bytes === undefined || rest.length > 0) return undefined;
  return { messages, bytes };
}
