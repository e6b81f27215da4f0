import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { Duplex, Readable, Writable } from "node:stream";
import type { universalResponseToNodeResponse } from "@connectrpc/connect-node";

export type HttpRequest = IncomingMessage | Http2ServerRequest;
/** A response of either version, in the words that both share. */
export type HttpResponse = Parameters<typeof universalResponseToNodeResponse>[1];
export type RequestListener = (request: HttpRequest, response: HttpResponse) => void;
/** Gives whether it answers the request by itself. */
export type RequestTaker = (request: HttpRequest, response: HttpResponse) => boolean;
/** Likewise, of a request whose body may be read: it is when it is iterated. */
export type PathTaker = (request: HttpRequest, response: HttpResponse, body: AsyncIterable<Uint8Array>) => boolean;

const principals = new WeakMap<HttpRequest, string>();

/** From now on its sender is the principal that was let in. */
export function sentBy(request: HttpRequest, principal: string): void {
  principals.set(request, principal);
}

/** Who sends it: its principal, or where nobody was let in its address, which is no principal's name. */
export function senderOf(request: HttpRequest): string {
  return principals.get(request) ?? `\0${request.socket.remoteAddress}`;
}

/** Whether a sender is nobody who was let in. */
export function isAddress(sender: string): boolean {
  return sender.startsWith("\0");
}

/** Where the body of a request is read; over HTTP/2 the stream itself. */
export function bodyOfRequest(request: HttpRequest): Readable {
  return "stream" in request ? request.stream : request;
}

/** Where the answer is written, likewise. */
export function sinkOf(response: HttpResponse): Writable {
  return "stream" in response ? (response.stream as Duplex) : response;
}
