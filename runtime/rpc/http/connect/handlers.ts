import type { ConnectRouter, ConnectRouterOptions } from "@connectrpc/connect";
import {
  type Compression,
  createAsyncIterable,
  createMethodSerializationLookup,
  validateReadWriteMaxBytes,
} from "@connectrpc/connect/protocol";
import { CallContext, type HandledMethod } from "../../handling/handler-context.ts";
import { methodsFromRoutes, type RecordedMethod } from "../../handling/recording-router.ts";
import type { HttpRequest, HttpResponse } from "../messages.ts";
import { readBody, wholeBody } from "./body.ts";
import { ENVELOPE_HEAD_BYTES, onlyMessage } from "./envelope.ts";
import { headerOf, type RequestHead, readHead, urlOf } from "./exchange.ts";
import { bodyOfRequest, whenLeft } from "./reply.ts";
import { answerServerStream } from "./server-stream.ts";
import { answerUnary } from "./unary.ts";

/*
 * The common way of the Connect protocol: a POST of one request that is not compressed, answered with one message or a stream.
 *
 *   readHead ──▶ readBody ──▶ parse ──▶ interceptors ──▶ implementation ──▶ unary.ts, server-stream.ts
 *
 * P1  It answers byte for byte what Connect's own handlers do, at a third of the cost: those put each message through a chain
 *     of hand-made generators, for all protocols and all kinds of calls.
 * P2  What is anything else (another protocol, GET, streams of requests, a compressed request, whatever must be refused before
 *     it is parsed) is left to those handlers, with what has been read of it.
 */

/** Undefined: answered. Otherwise the request is still to be answered, and this is its body, if it has been read from. */
export type Unanswered = { readonly body?: AsyncIterable<Uint8Array> } | undefined;

export type ConnectHandler = (request: HttpRequest, response: HttpResponse) => Promise<Unanswered>;

/** Handlers by path, of the methods that take one request. */
export function connectHandlers(
  routes: (router: ConnectRouter) => void,
  options: ConnectRouterOptions,
): ReadonlyMap<string, ConnectHandler> {
  if (options.requestGate) return new Map(); // it sees requests that have not been read
  const methods = methodsFromRoutes(routes, options.interceptors ?? []);
  const handlers = methods.flatMap((recorded): [string, ConnectHandler][] => {
    const { method, kind } = recorded.spec;
    if (kind !== "unary" && kind !== "server_streaming") return [];
    return [[`/${method.parent.typeName}/${method.name}`, createHandler(recorded, options)]];
  });
  return new Map(handlers);
}

function createHandler(recorded: RecordedMethod, options: ConnectRouterOptions): ConnectHandler {
  const { binaryOptions, jsonOptions, shutdownSignal, acceptCompression = [] } = options;
  const limits = validateReadWriteMaxBytes(options.readMaxBytes, options.writeMaxBytes, options.compressMinBytes);
  const { method, kind } = recorded.spec;
  const serialization = createMethodSerializationLookup(method, binaryOptions, jsonOptions, limits);
  const writing = { serialization, jsonOptions, compressMinBytes: limits.compressMinBytes };
  const isStream = kind === "server_streaming";
  const maxBytes = limits.readMaxBytes + (isStream ? ENVELOPE_HEAD_BYTES : 0);
  const available: readonly Compression[] = acceptCompression;
  return async (request, response) => {
    const head = readHead(request, available);
    if (head?.isStream !== isStream) return {};
    const context = createContext(recorded, request, head, shutdownSignal);
    whenLeft(response, (reason) => context.abort(reason));
    const source = bodyOfRequest(request);
    const body = await readBody(source, maxBytes);
    if (body.kind === "too long") return { body: wholeBody(body.chunks, source) };
    const message = isStream ? onlyMessage(body.bytes) : body.bytes;
    if (!message) return { body: createAsyncIterable([body.bytes]) };
    await (isStream ? answerServerStream : answerUnary)(recorded, writing, { head, context, message, response });
    return undefined;
  };
}

function createContext(
  { spec }: RecordedMethod,
  request: HttpRequest,
  { timeoutMs }: RequestHead,
  shutdown: AbortSignal | undefined,
): CallContext {
  const handled: HandledMethod = { spec, url: urlOf(request), protocolName: "connect" };
  return new CallContext(handled, { header: headerOf(request), timeoutMs }, shutdown);
}
