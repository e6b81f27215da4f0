import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ConnectRouterOptions,
  createConnectRouter,
} from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import type { Logger } from "pino";
import { connectError } from "../../failure/connect.ts";
import { messageFromUnknown } from "../../failure/failure.ts";
import { type ConnectHandler, connectHandlers } from "./connect/handlers.ts";
import type { HttpRequest, HttpResponse, RequestListener, RequestTaker } from "./messages.ts";
import { answerRefusal, responseFromRefusal } from "./refusal.ts";
import { createRequestGate } from "./request-gate.ts";
import { unservedForm, unservedPath } from "./unserved.ts";

export interface RequestListenerOptions {
  routes: (router: ConnectRouter) => void;
  connect: ConnectRouterOptions;
  before: RequestTaker | undefined;
  fallback: RequestTaker | undefined;
  logger: Pick<Logger, "warn"> | undefined;
}

/**
 * Serves the routes over Connect, gRPC and gRPC-Web, and leaves all other paths to the fallback. Each refusal has its reason:
 * those of the request gate and of handlers, and here those of requests that Connect has no words for.
 */
export function createRequestListener(options: RequestListenerOptions): RequestListener {
  const { before, fallback, logger } = options;
  const connect = { acceptCompression: [compressionGzip, compressionBrotli], ...options.connect };
  const router = createConnectRouter({ ...connect, requestGate: createRequestGate(connect.requestGate) });
  options.routes(router);
  const commonHandlers = connectHandlers(options.routes, connect);
  const handlersByPath = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  const answer: RequestListener = (request, response) => {
    if (before?.(request, response)) return;
    const path = pathOf(request);
    const handler = handlersByPath.get(path);
    if (!handler) {
      if (!fallback?.(request, response)) answerRefusal(request, response, unservedPath(router.handlers, request));
      return;
    }
    serve({ handler, common: commonHandlers.get(path) }, request, response).catch((error: unknown) => {
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
    try {
      answer(request, response);
    } catch (error) {
      fail(error, request, response);
    }
  };
}

function pathOf(request: HttpRequest): string {
  return (request.url ?? "").split("?", 1)[0] ?? "";
}

interface Handlers {
  readonly handler: UniversalHandler;
  readonly common: ConnectHandler | undefined;
}

async function serve({ handler, common }: Handlers, request: HttpRequest, response: HttpResponse): Promise<void> {
  if (!namesHost(request)) return answerRefusal(request, response, { status: 400, error: hostUnreadable() });
  const left = common ? await common(request, response) : {};
  if (!left) return;
  const read = universalRequestFromNodeRequest(request, response, undefined, undefined);
  const answer = await handler(left.body ? { ...read, body: left.body } : read);
  const contentType = request.headers["content-type"];
  const isServed = answer.status === 200 || answer.body !== undefined;
  const refused = () => unservedForm(handler, answer.status, { method: request.method, contentType });
  await universalResponseToNodeResponse(isServed ? answer : responseFromRefusal(contentType, refused()), response);
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
