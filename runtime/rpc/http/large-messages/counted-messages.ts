import { isUtf8 } from "node:buffer";
import type { DescMessage } from "@bufbuild/protobuf";
import {
  type EnvelopedMessage,
  pipe,
  transformJoinEnvelopes,
  transformSplitEnvelope,
} from "@connectrpc/connect/protocol";
import { connectError } from "../../../failure/connect.ts";
import { messageFromUnknown } from "../../../failure/failure.ts";
import { requireExactIntegers } from "../../../schema/json/exact-json.ts";
import { asciiOf, turnToParse } from "../../handling/messages/many-values.ts";
import { EnvelopeFlag } from "../connect/envelope.ts";
import { type HttpRequest, senderOf } from "../messages.ts";

/** Of JSON that is read by Connect's own handlers, where its process does nothing else meanwhile. */
const MOST_JSON_BYTES = 8 * 1024 * 1024;

/** Resolves when a message may be parsed. Refuses one that takes too long, by what the request says of its form. */
export type Count = (message: Uint8Array) => Promise<void>;

export function countOf(request: HttpRequest, desc: DescMessage, signal: AbortSignal): Count {
  const isBinary = !isJson(request);
  const sender = senderOf(request);
  return async (message) => {
    if (!isBinary) requireUtf8(message);
    if (!isBinary && message.length > MOST_JSON_BYTES) throw tooMuchJson();
    await turnToParse(message, { desc, isBinary, sender, signal });
    if (!isBinary) requireExact(message);
  };
}

export function isJson({ headers }: HttpRequest): boolean {
  return /json/i.test(headers["content-type"] ?? "");
}

/** The body as it came, of which each message is counted before it goes on. Those that are packed are counted where they are unpacked. */
export function countedBody(
  parts: AsyncIterable<Uint8Array>,
  { headers }: HttpRequest,
  { count, maxBytes }: { count: Count; maxBytes: number },
): AsyncIterable<Uint8Array> {
  const isEnveloped = /^application\/(grpc|connect\+)/i.test(headers["content-type"] ?? "");
  return isEnveloped ? pipe(parts, transformSplitEnvelope(maxBytes), counted, transformJoinEnvelopes()) : parts;

  async function* counted(envelopes: AsyncIterable<EnvelopedMessage>): AsyncIterable<EnvelopedMessage> {
    for await (const envelope of envelopes) {
      if ((envelope.flags & EnvelopeFlag.compressed) === 0) await count(envelope.data);
      yield envelope;
    }
  }
}

/** Whoever parses JSON puts a mark in the place of each byte that is no text, as protobuf does not: what was meant would be lost. */
export function requireUtf8(json: Uint8Array): void {
  if (!isUtf8(json)) throw connectError("invalid_argument", "the JSON is not UTF-8", { reason: "REQUEST_MALFORMED" });
}

/** `JSON.parse` rounds integers beyond 2^53, which may be sequences and revisions. */
export function requireExact(json: Uint8Array): void {
  try {
    requireExactIntegers(asciiOf(json));
  } catch (cause) {
    throw connectError("invalid_argument", messageFromUnknown(cause), { reason: "REQUEST_MALFORMED", cause });
  }
}

function tooMuchJson(): Error {
  const text = `JSON of more than ${MOST_JSON_BYTES} bytes is taken without compression, as the only message of a Connect request: send that, or protobuf`;
  return connectError("resource_exhausted", text, { reason: "MESSAGE_TOO_LARGE" });
}
