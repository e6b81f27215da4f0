import { connect } from "node:http2";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type CallToolRequest,
  CallToolRequestSchema,
  type CallToolResponse,
  CallToolResponseSchema,
} from "#gen/toolbus/tool/v1/tool_service_pb.ts";

/*
 * Calls tools over HTTP/2 as Connect has it, and does nothing else: what it costs is the gateway's, and not a client library's,
 * which for a stream is more than the gateway itself.
 */

const HEAD_BYTES = 5;
const END_FLAG = 2;

export function openHttpClient(url: string): (request: CallToolRequest) => Promise<CallToolResponse[]> {
  const session = connect(url);
  const head = {
    ":method": "POST",
    ":path": "/toolbus.tool.v1.ToolService/CallTool",
    "content-type": "application/connect+proto",
    "connect-protocol-version": "1",
  };
  return (request) =>
    new Promise((resolve, reject) => {
      const stream = session.request(head);
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("error", reject);
      stream.on("end", () => {
        try {
          resolve(messagesFrom(Buffer.concat(chunks)));
        } catch (error) {
          reject(error);
        }
      });
      stream.end(envelopeOf(toBinary(CallToolRequestSchema, request)));
    });
}

function envelopeOf(message: Uint8Array): Buffer {
  const envelope = Buffer.alloc(HEAD_BYTES + message.length);
  envelope.writeUInt32BE(message.length, 1);
  envelope.set(message, HEAD_BYTES);
  return envelope;
}

/** Throws what the end of the stream says of an error, and when there is no end. */
function messagesFrom(body: Buffer): CallToolResponse[] {
  const messages: CallToolResponse[] = [];
  for (let at = 0; at < body.length; ) {
    const end = at + HEAD_BYTES + body.readUInt32BE(at + 1);
    const bytes = body.subarray(at + HEAD_BYTES, end);
    if (body[at] === END_FLAG) {
      if (JSON.parse(bytes.toString()).error) throw new Error(bytes.toString());
      return messages;
    }
    messages.push(fromBinary(CallToolResponseSchema, bytes));
    at = end;
  }
  throw new Error(`the answer has no end: ${body.toString()}`);
}
