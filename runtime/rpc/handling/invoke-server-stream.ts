import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import type { Interceptor, MethodImplSpec, StreamRequest, StreamResponse } from "@connectrpc/connect";
import { takerOf } from "../identity.ts";
import type { CallContext } from "./handler-context.ts";
import { intercepted, type StreamFunction } from "./intercepted.ts";
import { copyMetadata, requestFrom, responseFrom } from "./invocation.ts";
import { iterableOf, mapped, onlyOf } from "./iterable-of.ts";
import { openSlices } from "./messages/slices.ts";

type ServerStreamSpec = Extract<MethodImplSpec, { kind: "server_streaming" }>;
type Message = MessageShape<DescMessage>;

/** Runs an implementation that streams answers with its interceptors, as Connect does, in slices of whom the answers are for. */
export async function invokeServerStream(
  spec: ServerStreamSpec,
  context: CallContext,
  input: Message,
  interceptors: readonly Interceptor[],
): Promise<AsyncIterator<Message>> {
  const request = requestFrom<StreamRequest>(context, true, iterableOf(input));
  let untouched: StreamResponse | undefined;
  const invoke: StreamFunction = async (passed) => {
    const passedContext = passed === request ? context : context.from(passed);
    const message = passed === request ? input : await onlyOf(passed.message);
    // what the implementation leaves out is filled in behind the interceptors' backs, where the message is written
    const answers = spec.impl(message, passedContext) as AsyncIterable<Message>;
    untouched = responseFrom<StreamResponse>(context, true, answers);
    return untouched;
  };
  const response = await intercepted(invoke, interceptors)(request);
  if (response !== untouched) copyMetadata(response, context);
  const nextStep = openSlices(takerOf(context).sender);
  return mapped(response.message, async (answer) => {
    await nextStep();
    return create(spec.method.output, answer);
  })[Symbol.asyncIterator]();
}

/** As `for await` has it: an implementation whose answers nobody takes any more may clean up. */
export async function leavingAtFailure(
  answers: AsyncIterator<Message>,
  work: (answers: AsyncIterator<Message>) => Promise<void>,
): Promise<void> {
  try {
    await work(answers);
  } catch (error) {
    await answers.return?.().catch(() => {}); // what failed first is told
    throw error;
  }
}
