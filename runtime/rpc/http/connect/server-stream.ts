import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { endStreamToJson } from "@connectrpc/connect/protocol-connect";
import { refusalFromUnknown } from "../../../failure/connect.ts";
import { startTimer } from "../../../time/timer.ts";
import { invokeServerStream, leavingAtFailure } from "../../handling/invoke-server-stream.ts";
import type { RecordedMethod } from "../../handling/recording-router.ts";
import { HEAD_MS } from "../head-in-time.ts";
import { inputOf, type ReadCall, type Writing } from "./call.ts";
import { EnvelopeFlag } from "./envelope.ts";
import { addFields } from "./exchange.ts";
import { type NodeHeaders, Reply, type ReplyHead } from "./reply.ts";

/** Runs the implementation and sends each of its messages, then its end, which says how it ended. */
export async function answerServerStream(method: RecordedMethod, writing: Writing, call: ReadCall): Promise<void> {
  const { response, context } = call;
  const reply = new Reply(response, () => headOf(call));
  const send = async (answer: MessageShape<DescMessage>) => {
    const bytes = writing.serialization.getO(call.head.isBinary).serialize(answer);
    await reply.send(await envelope(EnvelopeFlag.none, bytes, { writing, call }));
  };
  const stopWaiting = startTimer(HEAD_MS, () => reply.begin());
  const error = await sendAnswers(method, writing, { call, send }).then(() => undefined, refusalFromUnknown);
  stopWaiting();
  context.end();
  const end = endStreamToJson(context.responseTrailer, error, writing.jsonOptions);
  reply.end(await envelope(EnvelopeFlag.end, Buffer.from(JSON.stringify(end)), { writing, call }));
}

async function sendAnswers(
  method: RecordedMethod,
  writing: Writing,
  { call, send }: { call: ReadCall; send: (answer: MessageShape<DescMessage>) => Promise<void> },
): Promise<void> {
  const { spec, interceptors } = method;
  const { context } = call;
  if (spec.kind !== "server_streaming") throw new TypeError("a unary call is answered with one message");
  const input = await inputOf(method, writing, call);
  const answers = await invokeServerStream(spec, context, input, interceptors);
  await leavingAtFailure(answers, async () => {
    for (let next = await answers.next(); !next.done; next = await answers.next()) await send(next.value);
  });
}

async function envelope(
  flags: number,
  bytes: Uint8Array,
  { writing, call }: { writing: Writing; call: ReadCall },
): Promise<Uint8Array> {
  const { compression } = call.head;
  if (!compression || bytes.length < writing.compressMinBytes) return encodeEnvelope(flags, bytes);
  return encodeEnvelope(flags | EnvelopeFlag.compressed, await compression.compress(bytes));
}

/** The head goes with the first message, or after a second, so that an implementation can add to it until then. */
function headOf({ context, head }: ReadCall): ReplyHead {
  const fields: NodeHeaders = {};
  addFields(fields, context.answered.header);
  fields["content-type"] = head.isBinary ? "application/connect+proto" : "application/connect+json";
  if (head.compression) fields["connect-content-encoding"] = head.compression.name;
  return { status: 200, fields };
}
