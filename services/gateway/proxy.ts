import type {
  DescMessage,
  DescMethod,
  DescMethodStreaming,
  DescMethodUnary,
  DescService,
  MessageShape,
} from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext, type ServiceImpl, type Transport } from "@connectrpc/connect";
import { connectError, failingAs } from "#runtime/failure/connect.ts";
import { iterableOf } from "#runtime/rpc/handling/iterable-of.ts";
import { deliveryOf } from "#runtime/rpc/nats/call/delivery.ts";
import { forwardedHeaders, passHeaders } from "./headers.ts";
import { placeOf, resumedWatch } from "./resumed-watches.ts";

type Messages = AsyncIterable<MessageShape<DescMessage>>;

/**
 * An implementation of a service that passes every call on through a transport: message, metadata, deadline,
 * cancellation and error, whatever the methods are. `stopping` aborts when this process stops.
 */
export function createProxy<S extends DescService>(
  service: S,
  transport: Transport,
  stopping: AbortSignal,
): ServiceImpl<S> {
  const methods = service.methods.map(
    (method) => [method.localName, proxyMethod(method, transport, stopping)] as const,
  );
  // The shape follows from the descriptor, which the type checker cannot see.
  return Object.fromEntries(methods) as ServiceImpl<S>;
}

function proxyMethod(method: DescMethod, transport: Transport, stopping: AbortSignal) {
  switch (method.methodKind) {
    case "unary":
      return unary(method as DescMethodUnary, transport);
    case "server_streaming":
      return serverStream(method as DescMethodStreaming, transport, stopping);
    case "client_streaming":
      return async (requests: Messages, context: HandlerContext) => {
        const answered = answers(method as DescMethodStreaming, transport, requests, context);
        for await (const message of passing(answered)) return message;
        throw connectError("internal", "the service ended the call without an answer", { reason: "OUTCOME_UNKNOWN" });
      };
    case "bidi_streaming":
      return (requests: Messages, context: HandlerContext) =>
        passing(answers(method as DescMethodStreaming, transport, requests, context));
  }
}

function unary(method: DescMethodUnary, transport: Transport) {
  return async (request: MessageShape<DescMessage>, context: HandlerContext) => {
    const { signal, values } = context;
    const headers = forwardedHeaders(context);
    try {
      const response = await transport.unary(method, signal, context.timeoutMs(), headers, request, values);
      passHeaders(response.header, context.responseHeader);
      passHeaders(response.trailer, context.responseTrailer);
      return response.message;
    } catch (error) {
      throw passedOn(error);
    }
  };
}

/** A stream whose client can stand somewhere in it outlives the instance that serves it. */
function serverStream(method: DescMethodStreaming, transport: Transport, stopping: AbortSignal) {
  return (request: MessageShape<DescMessage>, context: HandlerContext) => {
    const open = (from: MessageShape<DescMessage>) => answers(method, transport, iterableOf(from), context);
    const place = placeOf(method, request);
    const { signal } = context;
    return passing(place === undefined ? open(request) : resumedWatch({ place, open, signal, stopping }));
  };
}

function passing(messages: Messages): Messages {
  return failingAs(messages, (error) => {
    throw passedOn(error);
  });
}

async function* answers(
  method: DescMethodStreaming,
  transport: Transport,
  requests: Messages,
  context: HandlerContext,
): Messages {
  const { signal, values } = context;
  const headers = forwardedHeaders(context);
  const response = await transport.stream(method, signal, context.timeoutMs(), headers, requests, values);
  passHeaders(response.header, context.responseHeader);
  yield* response.message;
  passHeaders(response.trailer, context.responseTrailer);
}

/** Connect drops the metadata of an error that came over a wire when it is thrown on; here it belongs to the answer. */
function passedOn(error: unknown): unknown {
  if (!(error instanceof ConnectError)) return error;
  if (error.code === Code.Unavailable && deliveryOf(error) === "NOT_SENT")
    return connectError("unavailable", error.rawMessage, { reason: "CALL_NOT_STARTED", cause: error });
  const metadata = new Headers();
  passHeaders(error.metadata, metadata);
  const passed = new ConnectError(error.rawMessage, error.code, metadata, undefined, error);
  passed.details = error.details;
  return passed;
}
