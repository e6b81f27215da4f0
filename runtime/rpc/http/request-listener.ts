import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
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
import { messageFromUnknown } from "../../failure/failure.ts";

export type HttpRequest = IncomingMessage | Http2ServerRequest;
/** A response of either version, in the words that both share. */
export type HttpResponse = Parameters<typeof universalResponseToNodeResponse>[1];
export type RequestListener = (request: HttpRequest, response: HttpResponse) => void;

export interface RequestListenerOptions {
  routes: (router: ConnectRouter) => void;
  connect: ConnectRouterOptions;
  before: ((request: HttpRequest, response: HttpResponse) => boolean) | undefined;
  fallback: RequestListener | undefined;
  logger: Pick<Logger, "warn"> | undefined;
}

/** Serves the routes over Connect, gRPC and gRPC-Web, and leaves all other paths to the fallback. */
export function createRequestListener(options: RequestListenerOptions): RequestListener {
  const { before, fallback = answerNotFound, logger } = options;
  const router = createConnectRouter({ acceptCompression: [compressionGzip, compressionBrotli], ...options.connect });
  options.routes(router);
  const handlersByPath = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  const answer: RequestListener = (request, response) => {
    if (before?.(request, response)) return;
    const path = pathOf(request);
    const handler = handlersByPath.get(path);
    if (!handler) {
      fallback(request, response);
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
    breakOff(response);
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
  if (!hasAuthority(request)) {
    response.writeHead(400);
    response.end();
    return;
  }
  const answer = await handler(universalRequestFromNodeRequest(request, response, undefined, undefined));
  await universalResponseToNodeResponse(answer, response);
}

/** HTTP/1.0 may leave the host out; the URL of a call cannot be told without. */
function hasAuthority(request: HttpRequest): boolean {
  return Boolean("authority" in request ? request.authority : request.headers.host);
}

function isGone(error: unknown): boolean {
  const { code } = ConnectError.from(error);
  return code === Code.Aborted || code === Code.Canceled;
}

function breakOff(response: HttpResponse): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  response.writeHead(500);
  response.end();
}

function answerNotFound(_request: HttpRequest, response: HttpResponse): void {
  response.writeHead(404);
  response.end();
}
