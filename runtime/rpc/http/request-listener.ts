import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ConnectRouterOptions,
  createConnectRouter,
} from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerRequest } from "@connectrpc/connect/protocol";
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import type { Logger } from "pino";
import { connectError } from "../../failure/connect.ts";
import { messageFromUnknown } from "../../failure/failure.ts";
import { answerRefusal, responseFromRefusal } from "./refusal.ts";
import { createRequestGate } from "./request-gate.ts";
import { unservedForm, unservedPath } from "./unserved.ts";

export type HttpRequest = IncomingMessage | Http2ServerRequest;
/** A response of either version, in the words that both share. */
export type HttpResponse = Parameters<typeof universalResponseToNodeResponse>[1];
export type RequestListener = (request: HttpRequest, response: HttpResponse) => void;
/** Gives whether it answers the request by itself. */
export type RequestTaker = (request: HttpRequest, response: HttpResponse) => boolean;

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
  const { before, fallback, connect, logger } = options;
  const acceptCompression = [compressionGzip, compressionBrotli];
  const requestGate = createRequestGate(connect.requestGate);
  const router = createConnectRouter({ acceptCompression, ...connect, requestGate });
  options.routes(router);
  const handlersByPath = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  const answer: RequestListener = (request, response) => {
    if (before?.(request, response)) return;
    const handler = handlersByPath.get(pathOf(request));
    if (!handler) {
      if (!fallback?.(request, response)) answerRefusal(request, response, unservedPath(router.handlers, request));
      return;
    }
    serve(handler, request, response).catch((error: unknown) => {
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

async function serve(handler: UniversalHandler, request: HttpRequest, response: HttpResponse): Promise<void> {
  const read = readRequest(request, response);
  if (!read) return answerRefusal(request, response, { status: 400, error: hostUnreadable() });
  const answer = await handler(read);
  const contentType = request.headers["content-type"];
  const isServed = answer.status === 200 || answer.body !== undefined;
  const refused = () => unservedForm(handler, answer.status, { method: request.method, contentType });
  await universalResponseToNodeResponse(isServed ? answer : responseFromRefusal(contentType, refused()), response);
}

/** Undefined without a host that can be read: the URL of the call cannot be told. HTTP/1.0 may leave it out. */
function readRequest(request: HttpRequest, response: HttpResponse): UniversalServerRequest | undefined {
  const authority = "authority" in request ? request.authority : request.headers.host;
  if (!authority || !URL.canParse(`http://${authority}`)) return undefined;
  return universalRequestFromNodeRequest(request, response, undefined, undefined);
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
