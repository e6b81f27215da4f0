import { Code, ConnectError, type ConnectRouterOptions, type ContextValues } from "@connectrpc/connect";
import {
  type Compression,
  createAsyncIterable,
  createMethodSerializationLookup,
  validateReadWriteMaxBytes,
} from "@connectrpc/connect/protocol";
import { CallContext, type HandledMethod } from "../../handling/handler-context.ts";
import { isShort } from "../../handling/messages/many-values.ts";
import type { RecordedMethod } from "../../handling/recording-router.ts";
import type { RequestBody } from "../body/request-body.ts";
import type { HttpRequest, HttpResponse } from "../messages.ts";
import { ENVELOPE_HEAD_BYTES, onlyMessage } from "./envelope.ts";
import { headerOf, type RequestHead, readHead, urlOf } from "./exchange.ts";
import { whenOver } from "./reply.ts";
import { answerServerStream } from "./server-stream.ts";
import { answerUnary } from "./unary.ts";

/*
 * The common way of the Connect protocol: a POST of one request that is not compressed, answered with one message or a stream.
 *
 *   readHead ──▶ readBody ──▶ parse ──▶ interceptors ──▶ implementation ──▶ unary.ts, server-stream.ts
 *
 * connect-1  It answers byte for byte what Connect's own handlers do, at a third of the cost: those put each message through a chain
 *     of hand-made generators, for all protocols and all kinds of calls.
 * connect-2  What is anything else (another protocol, GET, streams of requests, a compressed request, whatever must be refused before
 *     it is parsed) is left to those handlers, with what has been read of it.
 * connect-3  Of no protocol anything is made for one request before it is there as a whole, so that half of one costs its bytes alone.
 */

/**
 * Undefined: answered. Otherwise the request is still to be answered, and this is its body, if it has been read from; `isShort` says
 * that each of its messages is parsed at once.
 */
type Unanswered = { readonly body?: AsyncIterable<Uint8Array>; readonly isShort?: boolean } | undefined;

/** A request that may be served, as its head was judged. */
export interface Admitted {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly body: RequestBody;
  readonly values: ContextValues | undefined;
}

export type ConnectHandler = (admitted: Admitted) => Promise<Unanswered>;

/** Handlers by path, of those methods that take one request. */
export function connectHandlers(
  methods: readonly RecordedMethod[],
  options: ConnectRouterOptions,
): ReadonlyMap<string, ConnectHandler> {
  const handlers = methods.flatMap((recorded): [string, ConnectHandler][] => {
    const { method, kind } = recorded.spec;
    if (kind !== "unary" && kind !== "server_streaming") return [];
    return [[`/${method.parent.typeName}/${method.name}`, createHandler(recorded, options)]];
  });
  return new Map(handlers);
}

function createHandler(recorded: RecordedMethod, routerOptions: ConnectRouterOptions): ConnectHandler {
  const options = { ...routerOptions, ...recorded.options };
  const { binaryOptions, jsonOptions, acceptCompression = [] } = options;
  const limits = validateReadWriteMaxBytes(options.readMaxBytes, options.writeMaxBytes, options.compressMinBytes);
  const { method, kind } = recorded.spec;
  const serialization = createMethodSerializationLookup(method, binaryOptions, jsonOptions, limits);
  const writing = { serialization, jsonOptions, compressMinBytes: limits.compressMinBytes };
  const isStream = kind === "server_streaming";
  const maxBytes = limits.readMaxBytes + (isStream ? ENVELOPE_HEAD_BYTES : 0);
  const available: readonly Compression[] = acceptCompression;
  return async ({ request, response, body: source, values }) => {
    if (request.method !== "POST") return {};
    const head = readHead(request, available);
    const common = head?.isStream === isStream && { head, context: createContext(recorded, { request, head, values }) };
    if (common) whenOver(response, (reason) => common.context.abort(reason));
    const body = await source.read(maxBytes).catch(refusedBody); // connect-3
    if (body.kind === "refused") return { body: failing(body.error) };
    if (body.kind === "too long") return { body: wholeBody(body.chunks, source) };
    const message = isStream ? onlyMessage(body.bytes) : body.bytes;
    if (!common || !message) return { body: createAsyncIterable([body.bytes]), isShort: isShort(body.bytes) };
    await (isStream ? answerServerStream : answerUnary)(recorded, writing, { ...common, message, response });
    return undefined;
  };
}

type Head = Pick<Admitted, "request" | "values"> & { head: RequestHead };

function createContext({ spec }: RecordedMethod, { request, values, head: { timeoutMs } }: Head): CallContext {
  const handled: HandledMethod = { spec, url: urlOf(request), protocolName: "connect" };
  return new CallContext(handled, { header: headerOf(request), timeoutMs, values });
}

/** A body that may not be read on has an answer; a client that has left gets none. */
function refusedBody(error: unknown): { kind: "refused"; error: unknown } {
  if (ConnectError.from(error).code === Code.Canceled) throw error;
  return { kind: "refused", error };
}

// biome-ignore lint/correctness/useYield: it has nothing to give but its error
async function* failing(error: unknown): AsyncIterable<Uint8Array> {
  throw error;
}

/** What was read, and then what is still to come. */
async function* wholeBody(read: readonly Uint8Array[], rest: RequestBody): AsyncIterable<Uint8Array> {
  yield* read;
  yield* rest;
}
