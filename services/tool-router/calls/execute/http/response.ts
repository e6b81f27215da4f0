import type { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { toolJsonFrom } from "#runtime/schema/json/json-size.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { type Answer, failure, success, successJson } from "../../answers/answer.ts";

export interface Incoming {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Readable;
}

export interface ResponseLimits {
  /** Of the body, as it came over the wire and as it is when unpacked. */
  maxBytes: number;
  signal: AbortSignal;
}

const MAX_TOLD_CHARACTERS = 2_000;

/** What a response answers to the model; throws when it promises a success that cannot be read. */
export async function answerFromResponse(incoming: Incoming, method: string, limits: ResponseLimits): Promise<Answer> {
  const { status, headers } = incoming;
  if (status < 200 || status > 299) return failure(await textOfFailure(incoming, limits));
  if (method === "HEAD") {
    incoming.body.resume();
    const { "set-cookie": _, ...told } = headers;
    return success({ status, headers: told });
  }
  const { bytes, isWhole } = await beginningOf(incoming, limits);
  if (!isWhole) throw new Error(`the response is larger than ${limits.maxBytes} bytes`);
  return answerFromBytes(bytes, headerOf(headers, "content-type"));
}

/** The status, and the beginning of the body as far as it can be read. */
async function textOfFailure(incoming: Incoming, limits: ResponseLimits): Promise<string> {
  const { "retry-after": retryAfter } = incoming.headers;
  const head = `HTTP ${incoming.status}${retryAfter ? ` (Retry-After: ${String(retryAfter).slice(0, 100)})` : ""}`;
  try {
    const { bytes, isWhole } = await beginningOf(incoming, limits, 4 * MAX_TOLD_CHARACTERS);
    const text = textFromBytes(bytes, headerOf(incoming.headers, "content-type"), isWhole);
    return text === undefined ? `${head}: a body that is no text` : `${head}: ${text.slice(0, MAX_TOLD_CHARACTERS)}`;
  } catch (error) {
    limits.signal.throwIfAborted();
    return `${head}, and its body cannot be read: ${messageFromUnknown(error)}`;
  }
}

function headerOf(headers: Incoming["headers"], name: string): string {
  const value = headers[name] ?? "";
  return (Array.isArray(value) ? value.join(", ") : value).trim().toLowerCase();
}

/** JSON goes on as it is, text as a JSON string, and what is neither in base64 with its type. */
function answerFromBytes(bytes: Buffer, contentType: string): Answer {
  if (bytes.length === 0) return success(null);
  const text = textFromBytes(bytes, contentType);
  if (text === undefined)
    return success({ contentType: contentType || "application/octet-stream", base64: bytes.toString("base64") });
  const parsed = toolJsonFrom(text);
  const isPromised = isJsonType(contentType) || contentType === "";
  if (parsed !== undefined && (isPromised || isObject(parsed) || Array.isArray(parsed))) return successJson(text);
  if (isJsonType(contentType))
    throw new Error(`the response is called ${contentType} and is no JSON: ${text.slice(0, MAX_TOLD_CHARACTERS)}`);
  return success(text);
}

const JSON_TYPE = /^(application|text)\/([^;]+\+)?json\s*(;|$)/;
const TEXT_TYPE =
  /^(text\/|[^;]+\+xml\s*(;|$)|application\/(xml|javascript|yaml|x-yaml|x-ndjson|x-www-form-urlencoded|graphql|sql)\s*(;|$))/;

function isJsonType(contentType: string): boolean {
  return JSON_TYPE.test(contentType);
}

/** Undefined for what is no text. What is not called text is it if it looks like it: many servers know no type of what they have. */
function textFromBytes(bytes: Buffer, contentType: string, isWhole = true): string | undefined {
  if (!isJsonType(contentType) && !TEXT_TYPE.test(contentType))
    return bytes.some(isBinary) ? undefined : decoded(bytes, "utf-8", { fatal: true, stream: !isWhole });
  const [, charset = "utf-8"] = /charset="?([^\s;"]+)/.exec(contentType) ?? [];
  return decoded(bytes, charset) ?? decoded(bytes, "utf-8");
}

/** https://mimesniff.spec.whatwg.org/#binary-data-byte: what is short and binary, as of protobuf, may well be UTF-8. */
function isBinary(byte: number): boolean {
  return byte < 0x20 && ![0x09, 0x0a, 0x0c, 0x0d, 0x1b].includes(byte);
}

/** With `stream`, the bytes may end within a character. */
function decoded(bytes: Buffer, charset: string, { fatal = false, stream = false } = {}): string | undefined {
  try {
    return new TextDecoder(charset, { fatal }).decode(bytes, { stream });
  } catch {
    return undefined; // no such charset, or no text in it
  }
}

/** The first bytes of a body, unpacked; what comes after them is not read. */
async function beginningOf(incoming: Incoming, limits: ResponseLimits, wantedBytes = limits.maxBytes) {
  const { maxBytes, signal } = limits;
  const chunks: Buffer[] = [];
  let length = 0;
  const take = async (source: AsyncIterable<Buffer>) => {
    for await (const chunk of source) {
      length += chunk.length;
      chunks.push(chunk);
      if (length > wantedBytes) return;
    }
  };
  const unpack = unpacking(headerOf(incoming.headers, "content-encoding"));
  const packed = (source: AsyncIterable<Buffer>) => bounded(source, maxBytes);
  try {
    if (unpack === undefined) await pipeline(incoming.body, take, { signal });
    else await pipeline(incoming.body, packed, unpack, take, { signal });
  } catch (error) {
    if (length <= wantedBytes) throw error; // else it is what cutting the rest off gives
  }
  return { bytes: Buffer.concat(chunks).subarray(0, wantedBytes), isWhole: length <= wantedBytes };
}

/** A stream that unpacks to nothing for ever ends here. */
async function* bounded(packed: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer> {
  let length = 0;
  for await (const chunk of packed) {
    length += chunk.length;
    if (length > maxBytes) throw new Error(`the packed response is larger than ${maxBytes} bytes`);
    yield chunk;
  }
}

const UNPACKERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
};

function unpacking(encoding: string): Transform | undefined {
  if (encoding === "" || encoding === "identity") return undefined;
  const create = Object.hasOwn(UNPACKERS, encoding) ? UNPACKERS[encoding] : undefined;
  if (create === undefined) throw new Error(`the response is encoded as ${encoding}, which nobody asked for`);
  return create();
}
