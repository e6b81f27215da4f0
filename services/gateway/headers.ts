import type { HandlerContext } from "@connectrpc/connect";
import { IDENTITY_HEADER } from "#runtime/rpc/access/callers.ts";

/** Belongs to the connection between client and gateway, and means nothing behind it. */
const ownOfConnection = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "authorization",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "cookie",
  "date",
  "host",
  "keep-alive",
  "origin",
  "referer",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "user-agent",
  "vary",
  "x-api-key",
  IDENTITY_HEADER,
  // The client's span is the parent of the gateway's own, whose place the bus is told.
  "traceparent",
  "tracestate",
]);

const ownOfProtocol = ["connect-", "grpc-", "sec-", "access-control-", ":", "x-grpc-", "x-user-agent"];

function isMetadata(name: string): boolean {
  return !ownOfConnection.has(name) && !ownOfProtocol.some((prefix) => name.startsWith(prefix));
}

/** What services tell each other, and their own instances. */
const OWN_OF_SERVICES = "toolbus-";

/** What a service is told: the client's metadata, without what it claims of who it is. */
export function forwardedHeaders(context: HandlerContext): Headers {
  const headers = new Headers();
  for (const [name, value] of context.requestHeader)
    if (isMetadata(name) && !name.startsWith(OWN_OF_SERVICES)) headers.append(name, value);
  return headers;
}

/** What the client is told of the service's metadata. */
export function passHeaders(from: Headers, to: Headers): void {
  for (const [name, value] of from) if (isMetadata(name)) to.append(name, value);
}
