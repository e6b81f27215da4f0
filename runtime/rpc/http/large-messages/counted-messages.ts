import type { DescMessage } from "@bufbuild/protobuf";
import {
  type EnvelopedMessage,
  pipe,
  transformJoinEnvelopes,
  transformSplitEnvelope,
} from "@connectrpc/connect/protocol";
import { connectError } from "../../../failure/connect.ts";
import { maxValues } from "../../../schema/json-size.ts";
import { EnvelopeFlag } from "../connect/envelope.ts";
import type { HttpRequest } from "../messages.ts";
import { refuseManyValues } from "./many-values.ts";

/** Of JSON that is read by Connect's own handlers, where its process does nothing else meanwhile. */
const MOST_JSON_BYTES = 8 * 1024 * 1024;

/** Refuses a message that takes too long to read, by what the request says of its form. */
export type Count = (message: Uint8Array) => void;

export function countOf({ headers }: HttpRequest, input: DescMessage): Count {
  const isBinary = !/json/i.test(headers["content-type"] ?? "");
  return (message) => {
    if (!isBinary && message.length > MOST_JSON_BYTES) throw tooMuchJson();
    refuseManyValues(message, input, isBinary);
  };
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
      if ((envelope.flags & EnvelopeFlag.compressed) === 0) count(envelope.data);
      yield envelope;
    }
  }
}

function tooMuchJson(): Error {
  const text = `JSON of more than ${MOST_JSON_BYTES} bytes is taken without compression, as the only message of a Connect request: send that, or protobuf`;
  return connectError("resource_exhausted", text, { reason: "MESSAGE_TOO_LARGE" });
}

/** A whole body that is as short holds no message of too many values. */
export const mayHaveMany = (body: Uint8Array): boolean => body.length > maxValues;
