import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { transformInvokeImplementation } from "@connectrpc/connect/protocol";
import { connectError } from "../../../failure/connect.ts";
import { messageFromUnknown } from "../../../failure/failure.ts";
import { claimedPrincipal } from "../../access/callers.ts";
import { invokeServerStream, leavingAtFailure } from "../../handling/invoke-server-stream.ts";
import { invokeUnary } from "../../handling/invoke-unary.ts";
import { isShort, turnToParse } from "../../handling/messages/many-values.ts";
import { encoded } from "../frame/encoded.ts";
import { headersFromMetadata } from "../frame/headers.ts";
import { assertMessageFits } from "../frame/parts.ts";
import type { ServerCall } from "./server-call.ts";

type Message = MessageShape<DescMessage>;

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
  const input = await parsedRequest(call, body);
  const output = await invokeUnary(spec, call.context, input, interceptors);
  await call.answer(toBinary(spec.method.output, output));
}

async function answerStream(call: ServerCall, opening: Uint8Array): Promise<void> {
  const { spec, interceptors } = call.method;
  if (spec.kind !== "server_streaming") {
    call.channel.accept();
    const context = call.context.plain();
    const answers = transformInvokeImplementation(spec, context, interceptors)(requestsOf(call));
    return leavingAtFailure(answers[Symbol.asyncIterator](), (each) => answerEach(call, each));
  }
  const body = call.opening.hasMore ? await wholeRequest(call, opening) : opening;
  const input = await parsedRequest(call, body);
  const answers = await invokeServerStream(spec, call.context, input, interceptors);
  await leavingAtFailure(answers, (each) => answerStreamed(call, each));
}

/** An only answer that comes with its end goes as that of a unary call does. */
async function answerStreamed(call: ServerCall, answers: AsyncIterator<Message>): Promise<void> {
  const first = await answers.next();
  if (first.done) return answerEach(call, answers, first);
  const second = answers.next();
  if (await endsAtOnce(second)) return call.answer(encoded(call.method.spec.method.output, first.value));
  await answerEach(call, answers, first, second);
}

async function answerEach(
  call: ServerCall,
  answers: AsyncIterator<Message>,
  ...known: (IteratorResult<Message> | Promise<IteratorResult<Message>>)[]
): Promise<void> {
  const { channel, context, method } = call;
  for (let isFirst = true; ; isFirst = false) {
    const { done, value } = await (known.shift() ?? answers.next());
    const { header, trailer } = context.answered;
    if (done) return channel.end(headersFromMetadata({ header: isFirst ? header : undefined, trailer }));
    const answer = encoded(method.spec.method.output, value);
    assertMessageFits("the answer", answer);
    await channel.send(answer, isFirst ? { headers: headersFromMetadata({ header }) } : {});
  }
}

/** Whether an answer is the end of its stream and known in this turn of the event loop, in which nothing is written anyway. */
function endsAtOnce(answer: Promise<IteratorResult<Message>>): Promise<boolean> {
  return new Promise((resolve) => {
    setImmediate(resolve, false);
    answer.then(
      ({ done }) => resolve(done === true),
      () => resolve(false),
    );
  });
}

async function wholeRequest(call: ServerCall, first: Uint8Array): Promise<Uint8Array> {
  call.channel.pushOpening(first);
  call.channel.accept();
  const body = await call.channel.next();
  if (body === undefined)
    throw connectError("invalid_argument", "the request was not sent whole", { reason: "REQUEST_MALFORMED" });
  return body;
}

async function* requestsOf(call: ServerCall): AsyncIterable<Message> {
  for (;;) {
    const body = await call.channel.next();
    if (body === undefined) return;
    yield await parsedRequest(call, body);
  }
}

async function parsedRequest({ method, opening, context }: ServerCall, body: Uint8Array): Promise<Message> {
  const desc = method.spec.method.input;
  const { signal } = context;
  if (!isShort(body))
    await turnToParse(body, { desc, isBinary: true, sender: claimedPrincipal(opening.header), signal });
  try {
    return fromBinary(desc, body);
  } catch (error) {
    throw connectError("invalid_argument", `the request is no ${desc.typeName}: ${messageFromUnknown(error)}`, {
      reason: "REQUEST_MALFORMED",
      cause: error,
    });
  }
}
