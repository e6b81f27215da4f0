import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { createAsyncIterable, transformInvokeImplementation } from "@connectrpc/connect/protocol";
import { headersFromMetadata } from "./headers.ts";
import { invokeUnary } from "./invoke-unary.ts";
import { assertMessageFits } from "./parts.ts";
import type { ServerCall } from "./server-call.ts";

/** Runs the implementation of a call with its interceptors, as Connect does, and answers; resolves when all is said. */
export async function answerCall(call: ServerCall, body: Uint8Array): Promise<void> {
  try {
    if (call.method.spec.kind === "unary") await answerUnary(call, body);
    else await answerStream(call, body);
  } catch (error) {
    call.fail(error);
  } finally {
    call.close();
  }
}

async function answerUnary(call: ServerCall, opening: Uint8Array): Promise<void> {
  const { spec, interceptors } = call.method;
  if (spec.kind !== "unary") return;
  const body = call.opening.hasMore ? await wholeRequest(call, opening) : opening;
  const input = parseRequest(spec.method.input, body);
  const output = await invokeUnary(spec, call.context, input, interceptors);
  await call.answer(toBinary(spec.method.output, output));
}

async function answerStream(call: ServerCall, opening: Uint8Array): Promise<void> {
  const { spec, interceptors } = call.method;
  const { channel } = call;
  const context = call.context.plain();
  const isSingle = spec.kind === "server_streaming";
  const single = isSingle && !call.opening.hasMore ? parseRequest(spec.method.input, opening) : undefined;
  if (single) channel.beat();
  else if (!isSingle) channel.accept();
  const requests = single
    ? createAsyncIterable([single])
    : isSingle
      ? createAsyncIterable([parseRequest(spec.method.input, await wholeRequest(call, opening))])
      : requestsOf(call);
  let isFirst = true;
  for await (const output of transformInvokeImplementation(spec, context, interceptors)(requests)) {
    const answer = toBinary(spec.method.output, output);
    assertMessageFits("the answer", answer);
    await channel.send(answer, isFirst ? { headers: headersFromMetadata({ header: context.responseHeader }) } : {});
    isFirst = false;
  }
  const header = isFirst ? context.responseHeader : undefined;
  await channel.end(headersFromMetadata({ header, trailer: context.responseTrailer }));
}

async function wholeRequest(call: ServerCall, first: Uint8Array): Promise<Uint8Array> {
  call.channel.pushOpening(first);
  call.channel.accept();
  const body = await call.channel.next();
  if (body === undefined) throw new ConnectError("the request was not sent whole", Code.InvalidArgument);
  return body;
}

async function* requestsOf(call: ServerCall): AsyncIterable<MessageShape<DescMessage>> {
  const { input } = call.method.spec.method;
  for (;;) {
    const body = await call.channel.next();
    if (body === undefined) return;
    yield parseRequest(input, body);
  }
}

function parseRequest<I extends DescMessage>(desc: I, body: Uint8Array): MessageShape<I> {
  try {
    return fromBinary(desc, body);
  } catch (error) {
    throw new ConnectError(`the request is no ${desc.typeName}`, Code.InvalidArgument, undefined, undefined, error);
  }
}
