import type { DescMethod } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ConnectRouterOptions,
  type ContextValues,
  createConnectRouter,
} from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import type { Logger } from "pino";
import { getOrInsertComputed } from "../../collections/get-or-insert-computed.ts";
import { connectError } from "../../failure/connect.ts";
import { messageFromUnknown } from "../../failure/failure.ts";
import { methodsFromRoutes } from "../handling/recording-router.ts";
import { leaveBody } from "./body/leave-body.ts";
import { type BodyLimits, ConnectionBudget, RequestBody } from "./body/request-body.ts";
import { againstBombs } from "./body/unpacking.ts";
import { headerOf, urlOf } from "./connect/exchange.ts";
import { type Admitted, type ConnectHandler, connectHandlers } from "./connect/handlers.ts";
import { signalOf } from "./connect/reply.ts";
import { readableForConnect } from "./connect/request-header.ts";
import { answerWithHeadInTime } from "./head-in-time.ts";
import { countedBody, countOf, isJson } from "./large-messages/counted-messages.ts";
import {
  type HttpRequest,
  type HttpResponse,
  type PathTaker,
  type RequestListener,
  type RequestTaker,
  sinkOf,
} from "./messages.ts";
import { answerRefusal, answerThrown, responseFromRefusal, withReadableStatus } from "./refusal.ts";
import { requestGate } from "./request-gate.ts";
import { connectionOf, turns } from "./sockets/turns.ts";
import { unservedForm, unservedPath } from "./unserved.ts";

/**
 * Judges a call by its head, before a byte of its body is read. What it gives goes with the call; what it throws is the answer.
 */
export type Admit = (
  request: HttpRequest,
  method: DescMethod,
  response: HttpResponse,
) => ContextValues | undefined | Promise<ContextValues | undefined>;

export type ConnectOptions = ConnectRouterOptions & { readonly readMaxBytes: number };

export interface RequestListenerOptions {
  routes: (router: ConnectRouter) => void;
  connect: ConnectOptions;
  /** Sees every request first, to set headers or to answer it by itself; true means that it did. */
  before?: RequestTaker;
  /** Judges the head of every call before a byte of its body is read. */
  admit?: Admit;
  /** Serves paths that are no procedure; true means that it did, and all others are refused. */
  fallback?: PathTaker;
  body: BodyLimits;
  logger?: Pick<Logger, "warn">;
}

/**
 * Serves the routes over Connect, gRPC and gRPC-Web, and leaves all other paths to the fallback. Each refusal has its reason:
 * those of the request gate and of handlers, and here those of requests that Connect has no words for.
 */
export function createRequestListener(options: RequestListenerOptions): RequestListener {
  const { before, admit, fallback, logger } = options;
  const acceptCompression = [compressionGzip, compressionBrotli].map(againstBombs);
  const connect = { acceptCompression, ...options.connect };
  const router = createConnectRouter({ ...connect, requestGate });
  options.routes(router);
  const methods = methodsFromRoutes(options.routes, connect.interceptors ?? []);
  const commonHandlers = connectHandlers(methods, connect);
  const handlersByPath = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  const bodyOf = createBodies(options.body);
  /** Of one message. Some services take smaller ones than the others. */
  const maxBytesByMethod = new Map<DescMethod, number>(
    methods.map(({ spec, options: { readMaxBytes = connect.readMaxBytes } }) => [spec.method, readMaxBytes]),
  );

  const answer: RequestListener = (request, response) => {
    if (before?.(request, response)) return;
    const path = pathOf(request);
    const handler = handlersByPath.get(path);
    const body = bodyOf(request, response);
    if (!handler) {
      if (!fallback?.(request, response, body))
        answerRefusal(request, response, unservedPath(router.handlers, request));
      return;
    }
    const exchange = { request, response, body };
    serve(
      { handler, common: commonHandlers.get(path), admit, maxBytes: maxBytesByMethod.get(handler.method) ?? 0 },
      exchange,
    ).catch((error: unknown) => {
      if (!isGone(error)) fail(error, request, response);
    });
  };

  /** A fault in answering one request ends that request, and never the process. */
  function fail(error: unknown, request: HttpRequest, response: HttpResponse): void {
    const path = pathOf(request);
    logger?.warn({ err: error, path }, `answering ${path} failed: ${messageFromUnknown(error)}`);
    if (response.headersSent) response.destroy();
    else answerRefusal(request, response, { status: 500, error: failed(error) });
  }

  return (request, response) => {
    turns.begin(connectionOf(request), () => {
      if (sinkOf(response).destroyed) return; // whoever asked has left
      try {
        answer(request, response);
      } catch (error) {
        fail(error, request, response);
      }
    });
  };
}

function pathOf(request: HttpRequest): string {
  return (request.url ?? "").split("?", 1)[0] ?? "";
}

/** The requests of a connection hold their bodies from one budget; what is left of a body ends soon after its answer. */
function createBodies(limits: BodyLimits): (request: HttpRequest, response: HttpResponse) => RequestBody {
  const budgets = new WeakMap<object, ConnectionBudget>();
  return (request, response) => {
    const connection = connectionOf(request);
    const budget = getOrInsertComputed(budgets, connection, () => new ConnectionBudget(limits));
    sinkOf(response).once("finish", () => leaveBody(request));
    return new RequestBody({ request, response }, budget, limits);
  };
}

interface Handlers {
  readonly handler: UniversalHandler;
  readonly common: ConnectHandler | undefined;
  readonly admit: Admit | undefined;
  /** Of one message. */
  readonly maxBytes: number;
}

type Exchange = Omit<Admitted, "values">;

async function serve({ handler, common, admit, maxBytes }: Handlers, exchange: Exchange): Promise<void> {
  const { request, response, body } = exchange;
  if (!namesHost(request)) return answerRefusal(request, response, { status: 400, error: hostUnreadable() });
  const values = await valuesFrom(admit, exchange, handler.method);
  if (values === "refused") return;
  const left = common ? await common({ request, response, body, values }) : {};
  if (!left) return;
  const read = universalRequestOf(exchange, values);
  const kind = handler.method.methodKind;
  const parts = left.body ?? (kind === "bidi_streaming" || kind === "client_streaming" ? body.messages() : body);
  const count = countOf(request, handler.method.input, read.signal);
  const counted = left.isShort && !isJson(request) ? parts : countedBody(parts, request, { count, maxBytes });
  const call = { ...read, body: counted };
  const isStream = kind === "bidi_streaming" || kind === "server_streaming";
  const answer = await body.whileServed(count, () => (isStream ? answerWithHeadInTime(handler, call) : handler(call)));
  const contentType = request.headers["content-type"];
  const isServed = answer.status === 200 || answer.body !== undefined;
  const refused = () => unservedForm(handler, answer.status, { method: request.method, contentType });
  const sent = isServed ? withReadableStatus(answer) : responseFromRefusal(contentType, refused());
  await universalResponseToNodeResponse(sent, response);
}

/** The request as Connect's own handlers take it. */
function universalRequestOf({ request, response }: Exchange, contextValues: ContextValues | undefined) {
  const { httpVersion, method = "" } = request;
  const [url, header] = [urlOf(request), readableForConnect(headerOf(request))];
  return { httpVersion, method, url, header, signal: signalOf(response), ...(contextValues && { contextValues }) };
}

async function valuesFrom(admit: Admit | undefined, { request, response }: Exchange, method: DescMethod) {
  try {
    return await admit?.(request, method, response);
  } catch (thrown) {
    answerThrown(request, response, thrown);
    return "refused";
  }
}

/** Without a host that can be read the URL of the call cannot be told. HTTP/1.0 may leave it out. */
function namesHost(request: HttpRequest): boolean {
  const authority = "authority" in request ? request.authority : request.headers.host;
  return Boolean(authority) && URL.canParse(`http://${authority}`);
}

function hostUnreadable(): ConnectError {
  const text = "the request names no host that can be read: send the header Host (in HTTP/2, :authority)";
  return connectError("invalid_argument", text, { reason: "REQUEST_MALFORMED" });
}

function failed(cause: unknown): ConnectError {
  return connectError("internal", "internal error", { reason: "INTERNAL", cause });
}

function isGone(error: unknown): boolean {
  const { code } = ConnectError.from(error);
  return code === Code.Aborted || code === Code.Canceled;
}
