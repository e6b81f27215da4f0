import { createLocalJWKSet, createRemoteJWKSet, customFetch } from "jose";
import { messageFromUnknown } from "#runtime/failure/failure.ts";

const FETCH_TIMEOUT_MS = 5_000;
/** No issuer publishes as much. */
const MAX_BYTES = 1024 * 1024;
/** At most so often any token makes the gateway ask the issuer for its keys, while they cannot be read. */
const RETRY_MS = 1_000;
/** How long keys hold that were read before; no key that was withdrawn meanwhile holds longer. */
const HOLD_MS = 24 * 60 * 60_000;

export interface IssuerKeysOptions {
  /** At most so often, tokens whose key is unknown or does not hold make the gateway ask the issuer for its keys again. */
  readonly refetchMs: number;
  readonly onFault: (fault: string) => void;
}

export type IssuerKeys = ReturnType<typeof createIssuerKeys>;

/** The keys that an issuer publishes, and may change. While they cannot be read, those that were read last hold. */
export function createIssuerKeys(jwksUrl: URL, { refetchMs, onFault }: IssuerKeysOptions) {
  let askedAt = Number.NEGATIVE_INFINITY;
  let last: { text: string; atMs: number } | undefined;
  let fault: unknown;

  async function read(url: string, init: RequestInit): Promise<Response> {
    if (fault !== undefined && performance.now() < askedAt + Math.min(RETRY_MS, refetchMs)) throw fault;
    askedAt = performance.now();
    try {
      last = { text: await readKeys(url, init), atMs: askedAt };
      fault = undefined;
      return new Response(last.text);
    } catch (error) {
      fault = error;
      const held = last && askedAt <= last.atMs + HOLD_MS ? last : undefined;
      const minutes = Math.round((askedAt - (held?.atMs ?? 0)) / 60_000);
      const what = held ? `those of ${minutes} minutes ago hold on, for a day` : "no token holds";
      const why = messageFromUnknown(Object(error).cause ?? error); // "fetch failed", it says
      onFault(`the keys of the issuer cannot be read, and ${what}: ${why}`);
      if (held === undefined) throw error;
      return new Response(held.text);
    }
  }

  const keys = createRemoteJWKSet(jwksUrl, {
    timeoutDuration: FETCH_TIMEOUT_MS,
    cooldownDuration: refetchMs,
    [customFetch]: read,
  });
  return {
    keys,
    /** Why they could not be read last: then a key that is not among them may be published all the same. */
    get fault() {
      return fault;
    },
  };
}

/** Throws for all that is no JWK Set. */
async function readKeys(url: string, init: RequestInit): Promise<string> {
  const { status, body } = await fetch(url, init);
  if (status !== 200) throw new Error(`it answers with HTTP ${status}`);
  let text = "";
  for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += part;
    if (text.length > MAX_BYTES) throw new Error(`its answer is larger than ${MAX_BYTES} bytes`);
  }
  createLocalJWKSet(JSON.parse(text));
  return text;
}
