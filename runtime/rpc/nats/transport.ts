import { create, type DescMessage, type DescMethod, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextValues,
  type Interceptor,
  type Transport,
} from "@connectrpc/connect";
import { runStreamingCall, runUnaryCall } from "@connectrpc/connect/protocol";
import type { NatsConnection } from "@nats-io/nats-core";
import type { ClientContext, ClientRequest, Progress } from "./client-call.ts";
import { deliveryOf, unknownOutcome, withDelivery } from "./delivery.ts";
import { CallMux } from "./mux.ts";
import { assertMessageFits } from "./parts.ts";
import { callStream, type StreamRequests } from "./stream-call.ts";
import { subjectOfMethod, urlOfMethod } from "./subjects.ts";
import { DEFAULT_TIMINGS, type Timings } from "./timings.ts";
import { callUnary } from "./unary-call.ts";

export interface NatsTransportOptions {
  /** The service on the bus, which is also its queue group. */
  readonly service: string;
  readonly interceptors?: Interceptor[];
  readonly defaultTimeoutMs?: number;
  readonly timings?: Timings;
}

interface MethodRoute {
  readonly subject: string;
  readonly url: string;
}

/**
 * A Connect transport over NATS, as `docs/connect-over-nats.md` describes it. It lives as long as the connection of the bus and
 * needs no closing. `deliveryOf` tells of a call that failed without an answer whether it may have been started.
 */
export function createNatsTransport(bus: { connection: NatsConnection }, options: NatsTransportOptions): Transport {
  const context: ClientContext = {
    mux: CallMux.of(bus.connection),
    service: options.service,
    timings: options.timings ?? DEFAULT_TIMINGS,
  };
  const interceptors = options.interceptors ?? [];
  const routes = new Map<DescMethod, MethodRoute>();

  const routeOf = (method: DescMethod): MethodRoute => {
    const known = routes.get(method);
    if (known) return known;
    const route = { subject: subjectOfMethod(options.service, method), url: urlOfMethod(options.service, method) };
    routes.set(method, route);
    return route;
  };

  const timeoutOf = (timeoutMs: number | undefined): number | undefined => {
    if (timeoutMs === undefined) return options.defaultTimeoutMs;
    return timeoutMs <= 0 ? undefined : timeoutMs;
  };

  return {
    async unary(method, signal, timeoutMs, header, input, contextValues) {
      const route = routeOf(method);
      const limitMs = timeoutOf(timeoutMs);
      const call = callOf(route, limitMs);
      try {
        return await runUnaryCall({
          ...(signal && { signal }),
          ...(limitMs !== undefined && { timeoutMs: limitMs }),
          interceptors,
          req: {
            stream: false,
            method,
            message: create(method.input, input),
            ...commonOf(method, route, header, contextValues),
          },
          next: async (request) => {
            const body = toBinary(method.input, request.message);
            const answer = await callUnary(context, requestOf(call, request), body);
            call.progress.stage = "answered";
            const message = parseAnswer(method.output, answer.body);
            const { header, trailer } = answer;
            return { stream: false, service: method.parent, method, header, trailer, message };
          },
        });
      } catch (error) {
        throw errorOfCall(error, call.progress);
      }
    },

    async stream(method, signal, timeoutMs, header, input, contextValues) {
      const route = routeOf(method);
      const limitMs = timeoutOf(timeoutMs);
      const call = callOf(route, limitMs);
      try {
        return await runStreamingCall({
          ...(signal && { signal }),
          ...(limitMs !== undefined && { timeoutMs: limitMs }),
          interceptors,
          req: { stream: true, method, message: input, ...commonOf(method, route, header, contextValues) },
          next: async (request) => {
            const requests = await requestsOf(method, request.message);
            const answer = await callStream(context, requestOf(call, request), requests);
            const message = messagesOf(method.output, answer.bodies, call.progress);
            const { header, trailer } = answer;
            return { stream: true, service: method.parent, method, header, trailer, message };
          },
        });
      } catch (error) {
        throw errorOfCall(error, call.progress);
      }
    },
  };
}

interface Call {
  readonly subject: string;
  readonly deadline: number | undefined;
  readonly progress: Progress;
}

function callOf(route: MethodRoute, limitMs: number | undefined): Call {
  const deadline = limitMs === undefined ? undefined : Date.now() + limitMs;
  return { subject: route.subject, deadline, progress: { stage: "unsent" } };
}

function commonOf(
  method: DescMethod,
  route: MethodRoute,
  header: ConstructorParameters<typeof Headers>[0],
  values?: ContextValues,
) {
  return {
    service: method.parent,
    requestMethod: "POST",
    url: route.url,
    header: new Headers(header),
    contextValues: values ?? createContextValues(),
  };
}

function requestOf(call: Call, request: { signal: AbortSignal; header: Headers }): ClientRequest {
  return { ...call, signal: request.signal, header: request.header };
}

/** A method that takes one request sends it with the opening. */
async function requestsOf<I extends DescMessage>(
  method: DescMethod & { input: I },
  messages: AsyncIterable<MessageShape<I>>,
): Promise<StreamRequests> {
  if (method.methodKind !== "server_streaming") return { kind: "many", bodies: bodiesOf(method.input, messages) };
  for await (const message of messages) return { kind: "one", body: toBinary(method.input, message) };
  throw new ConnectError("a call that streams answers needs its one request", Code.InvalidArgument);
}

async function* bodiesOf<I extends DescMessage>(
  desc: I,
  messages: AsyncIterable<MessageShape<I>>,
): AsyncIterable<Uint8Array> {
  for await (const message of messages) {
    const body = toBinary(desc, message);
    assertMessageFits("the request", body);
    yield body;
  }
}

async function* messagesOf<O extends DescMessage>(
  desc: O,
  bodies: AsyncIterable<Uint8Array>,
  progress: Progress,
): AsyncIterable<MessageShape<O>> {
  for await (const body of bodies) yield parseAnswer(desc, body);
  progress.stage = "answered";
}

function parseAnswer<O extends DescMessage>(desc: O, body: Uint8Array): MessageShape<O> {
  try {
    return fromBinary(desc, body);
  } catch (error) {
    throw unknownOutcome(`the answer is no ${desc.typeName}`, Code.Internal, error);
  }
}

/** Says on a failure of this side, such as an abort, what is known of the delivery; answers of the server stand as they are. */
function errorOfCall(thrown: unknown, progress: Progress): unknown {
  const error = ConnectError.from(thrown);
  if (error.isWireError || progress.stage === "answered" || deliveryOf(error)) return error;
  return withDelivery(error, progress.stage === "unsent" ? "NOT_SENT" : "UNKNOWN");
}
