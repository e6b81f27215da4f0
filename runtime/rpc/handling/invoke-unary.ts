import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import type { Interceptor, MethodImplSpec, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import type { CallContext } from "./handler-context.ts";
import { intercepted, type UnaryFunction } from "./intercepted.ts";
import { copyMetadata, requestFrom, responseFrom } from "./invocation.ts";

type UnarySpec = Extract<MethodImplSpec, { kind: "unary" }>;

/** Runs an implementation with its interceptors, as Connect's `invokeUnaryImplementation` does. */
export async function invokeUnary(
  spec: UnarySpec,
  context: CallContext,
  input: MessageShape<DescMessage>,
  interceptors: readonly Interceptor[],
): Promise<MessageShape<DescMessage>> {
  if (interceptors.length === 0) return create(spec.method.output, await spec.impl(input, context));
  const request = requestFrom<UnaryRequest>(context, false, input);
  let untouched: UnaryResponse | undefined;
  const invoke: UnaryFunction = async (passed) => {
    const passedContext = passed === request ? context : context.from(passed);
    const message = create(spec.method.output, await spec.impl(passed.message, passedContext));
    untouched = responseFrom<UnaryResponse>(context, false, message);
    return untouched;
  };
  const response = await intercepted(invoke, interceptors)(request);
  if (response !== untouched) copyMetadata(response, context);
  return response.message;
}
