import { mergeNonProtocolHeaders } from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { refusalFromUnknown } from "../../../failure/connect.ts";
import { invokeUnary } from "../../handling/invoke-unary.ts";
import type { RecordedMethod } from "../../handling/recording-router.ts";
import { inputOf, type ReadCall, type Writing } from "./call.ts";
import { addFields } from "./exchange.ts";
import { type NodeHeaders, Reply } from "./reply.ts";

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: Uint8Array;
}

/** Runs the implementation and answers with its message, or with its error as JSON. */
export async function answerUnary(method: RecordedMethod, writing: Writing, call: ReadCall): Promise<void> {
  const { response, context, head } = call;
  const { status, type, body } = await answerOf(method, writing, call);
  context.end();
  const compression = body.length >= writing.compressMinBytes ? head.compression : null;
  const sent = compression ? await compression.compress(body) : body;
  const fields: NodeHeaders = {};
  addFields(fields, context.answered.header);
  addFields(fields, context.answered.trailer, "trailer-");
  fields["content-type"] = type;
  fields["content-length"] = String(sent.length);
  if (compression) fields["content-encoding"] = compression.name;
  new Reply(response, () => ({ status, fields })).end(sent);
}

async function answerOf(method: RecordedMethod, writing: Writing, call: ReadCall): Promise<Answer> {
  const { spec, interceptors } = method;
  const { context, head } = call;
  const { serialization, jsonOptions } = writing;
  if (spec.kind !== "unary") throw new TypeError("a stream is answered with many messages");
  try {
    const input = await inputOf(method, writing, call);
    const output = await invokeUnary(spec, context, input, interceptors);
    const body = serialization.getO(head.isBinary).serialize(output);
    return { status: 200, type: head.isBinary ? "application/proto" : "application/json", body };
  } catch (thrown) {
    const error = refusalFromUnknown(thrown);
    if (!error.isWireError) mergeNonProtocolHeaders(context.responseHeader, error.metadata);
    return {
      status: codeToHttpStatus(error.code),
      type: "application/json",
      body: errorToJsonBytes(error, jsonOptions),
    };
  }
}
