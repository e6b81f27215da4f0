import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { endStreamToJson } from "@connectrpc/connect/protocol-connect";
import { refusalFromUnknown } from "../../../failure/connect.ts";
import { invokeServerStream } from "../../handling/invoke-server-stream.ts";
import type { RecordedMethod } from "../../handling/recording-router.ts";
import type { ReadCall, Writing } from "./call.ts";
import { EnvelopeFlag, envelopeOf } from "./envelope.ts";
import { addFields, type NodeHeaders, write } from "./exchange.ts";

/** Runs the implementation and sends each of its messages, then its end, which says how it ended. */
export async function answerServerStream(method: RecordedMethod, writing: Writing, call: ReadCall): Promise<void> {
  const { response, context } = call;
  const error = await sendAnswers(method, writing, call).then(() => undefined, refusalFromUnknown);
  context.end();
  if (response.destroyed) return;
  const end = endStreamToJson(context.responseTrailer, error, writing.jsonOptions);
  const last = await envelope(EnvelopeFlag.end, Buffer.from(JSON.stringify(end)), { writing, call });
  begin(call);
  response.end(last);
}

async function sendAnswers({ spec, interceptors }: RecordedMethod, writing: Writing, call: ReadCall): Promise<void> {
  const { context, head, message } = call;
  if (spec.kind !== "server_streaming") throw new TypeError("a unary call is answered with one message");
  const input = writing.serialization.getI(head.isBinary).parse(message);
  const answers = await invokeServerStream(spec, context, input, interceptors);
  try {
    for (let next = await answers.next(); !next.done; next = await answers.next()) {
      await send(next.value, writing, call);
    }
  } catch (thrown) {
    await answers.return?.().catch(() => {}); // what failed first is told
    throw thrown;
  }
}

async function send(answer: MessageShape<DescMessage>, writing: Writing, call: ReadCall): Promise<void> {
  const bytes = writing.serialization.getO(call.head.isBinary).serialize(answer);
  const framed = await envelope(EnvelopeFlag.none, bytes, { writing, call });
  begin(call);
  await write(call.response, framed);
}

async function envelope(
  flags: number,
  bytes: Uint8Array,
  { writing, call }: { writing: Writing; call: ReadCall },
): Promise<Uint8Array> {
  const { compression } = call.head;
  if (!compression || bytes.length < writing.compressMinBytes) return envelopeOf(flags, bytes);
  return envelopeOf(flags | EnvelopeFlag.compressed, await compression.compress(bytes));
}

/** Headers go with the first message, so that an implementation can add to them until then. */
function begin({ response, context, head }: ReadCall): void {
  if (response.headersSent) return;
  const type = head.isBinary ? "application/connect+proto" : "application/connect+json";
  const fields: NodeHeaders = {};
  addFields(fields, context.answered.header);
  fields["content-type"] = type;
  if (head.compression) fields["connect-content-encoding"] = head.compression.name;
  response.writeHead(200, fields);
}
