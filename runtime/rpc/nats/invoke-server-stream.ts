import { create, type DescMessage, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type Interceptor,
  type MethodImplSpec,
  type StreamRequest,
  type StreamResponse,
} from "@connectrpc/connect";
import type { CallContext } from "./handler-context.ts";
import { copyMetadata } from "./invoke-unary.ts";

type ServerStreamSpec = Extract<MethodImplSpec, { kind: "server_streaming" }>;
type StreamFunction = (request: StreamRequest) => Promise<StreamResponse>;
type Message = MessageShape<DescMessage>;

/**
 * Runs an implementation that streams answers to one request with its interceptors, as Connect's `transformInvokeImplementation`
 * does, but leaves to the context what nobody asks for, as `invokeUnary` does.
 */
export async function invokeServerStream(
  spec: ServerStreamSpec,
  context: CallContext,
  input: Message,
  interceptors: readonly Interceptor[],
): Promise<AsyncIterator<Message>> {
  const request = requestFrom(spec, context, input);
  let untouched: StreamResponse | undefined;
  const invoke: StreamFunction = async (passed) => {
    const passedContext = passed === request ? context : context.from(passed);
    const message = passed === request ? input : await onlyOf(passed.message);
    untouched = responseFrom(spec, context, spec.impl(message, passedContext));
    return untouched;
  };
  const response = await interceptedStream(invoke, interceptors)(request);
  if (response !== untouched) copyMetadata(response, context);
  const iterator = response.message[Symbol.asyncIterator]();
  return {
    async next() {
      const result = await iterator.next();
      if (result.done) return result;
      return { done: false, value: create(spec.method.output, result.value) };
    },
    async return() {
      await iterator.return?.();
      return { done: true, value: undefined };
    },
  };
}

/** The last interceptor stands next to the call. */
export function interceptedStream(innermost: StreamFunction, interceptors: readonly Interceptor[]): StreamFunction {
  // The innermost function and all interceptors of a stream pass on stream requests only.
  return interceptors.reduceRight(
    (next, interceptor) => interceptor(next as Parameters<Interceptor>[0]) as StreamFunction,
    innermost,
  );
}

function requestFrom(spec: ServerStreamSpec, context: CallContext, input: Message): StreamRequest {
  return {
    stream: true,
    method: spec.method,
    service: spec.method.parent,
    requestMethod: context.requestMethod,
    url: context.url,
    message: iterableOf(input),
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

function responseFrom(
  spec: ServerStreamSpec,
  context: CallContext,
  message: AsyncIterable<MessageInitShape<DescMessage>>,
): StreamResponse {
  return {
    stream: true,
    method: spec.method,
    service: spec.method.parent,
    // what the implementation leaves out is filled in behind the interceptors' backs, where the message is written
    message: message as AsyncIterable<Message>,
    get header() {
      return context.responseHeader;
    },
    get trailer() {
      return context.responseTrailer;
    },
  };
}

function iterableOf<T>(item: T): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      let isTaken = false;
      return {
        async next() {
          if (isTaken) return { done: true, value: undefined };
          isTaken = true;
          return { done: false, value: item };
        },
      };
    },
  };
}

async function onlyOf<T>(items: AsyncIterable<T>): Promise<T> {
  const { done, value } = await items[Symbol.asyncIterator]().next();
  if (done) throw new ConnectError("the request is missing", Code.Unimplemented);
  return value;
}
