import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { universalResponseToNodeResponse } from "@connectrpc/connect-node";

export type HttpRequest = IncomingMessage | Http2ServerRequest;
/** A response of either version, in the words that both share. */
export type HttpResponse = Parameters<typeof universalResponseToNodeResponse>[1];
export type RequestListener = (request: HttpRequest, response: HttpResponse) => void;
/** Gives whether it answers the request by itself. */
export type RequestTaker = (request: HttpRequest, response: HttpResponse) => boolean;
