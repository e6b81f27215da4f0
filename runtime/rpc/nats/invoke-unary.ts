import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import type { Interceptor, MethodImplSpec, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import type { CallContext } from "./handler-context.ts";

type UnarySpec = Extract<MethodImplSpec, { kind: "unary" }>;
type UnaryFunction = (request: UnaryRequest) => Promise<UnaryResponse>;

/**
 * Runs an implementation with its interceptors, as Connect's `invokeUnaryImplementation` does, but leaves to the context what
 * nobody asks for: properties of the request are accessors, which an interceptor may read or copy.
 */
export async function invokeUnary(
  spec: UnarySpec,
  context: CallContext,
  input: MessageShape<DescMessage>,
  interceptors: readonly Interceptor[],
): Promise<MessageShape<DescMessage>> {
  if (interceptors.length === 0) return create(spec.method.output, await spec.impl(input, context));
  const request = requestFrom(spec, context, input);
  let untouched: UnaryResponse | undefined;
  const invoke: UnaryFunction = async (passed) => {
    const passedContext = passed === request ? context : context.from(passed);
    const message = create(spec.method.output, await spec.impl(passed.message, passedContext));
    untouched = responseFrom(spec, context, message);
    return untouched;
  };
  const response = await intercepted(invoke, interceptors)(request);
  if (response !== untouched) copyMetadata(response, context);
  return response.message;
}

/** The last interceptor stands next to the call. */
export function intercepted(innermost: UnaryFunction, interceptors: readonly Interceptor[]): UnaryFunction {
  // The innermost function and all interceptors of a unary call pass on unary requests only.
  return interceptors.reduceRight(
    (next, interceptor) => interceptor(next as Parameters<Interceptor>[0]) as UnaryFunction,
    innermost,
  );
}

function requestFrom(spec: UnarySpec, context: CallContext, message: MessageShape<DescMessage>): UnaryRequest {
  return {
    stream: false,
    method: spec.method,
    service: spec.method.parent,
    requestMethod: context.requestMethod,
    url: context.url,
    message,
    get signal() {
      return context.signal;
    },
    get header() {
      return context.requestHeader;
    },
    get contextValues() {
      return context.values;
    },
  };
}

function responseFrom(spec: UnarySpec, context: CallContext, message: MessageShape<DescMessage>): UnaryResponse {
  return {
    stream: false,
    method: spec.method,
    service: spec.method.parent,
    message,
    get header() {
      return context.responseHeader;
    },
    get trailer() {
      return context.responseTrailer;
    },
  };
}

/** What interceptors answered in place of what the implementation did. */
export function copyMetadata(response: Pick<UnaryResponse, "header" | "trailer">, context: CallContext): void {
  replaceMetadata(response.header, context.responseHeader);
  replaceMetadata(response.trailer, context.responseTrailer);
}

function replaceMetadata(from: Headers, to: Headers): void {
  if (from === to) return;
  for (const key of [...to.keys()]) to.delete(key);
  from.forEach((value, key) => {
    to.set(key, value);
  });
}
