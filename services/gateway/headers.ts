import type { HandlerContext } from "@connectrpc/connect";

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
  // The client's span is the parent of the gateway's own, whose place the bus is told.
  "traceparent",
  "tracestate",
]);

/** Belongs to a protocol, or is what services tell each other, and their own instances. */
const ownOfOthers = ["toolbus-", "connect-", "grpc-", "sec-", "access-control-", ":", "x-grpc-", "x-user-agent"];

function isMetadata(name: string): boolean {
  return !ownOfConnection.has(name) && !ownOfOthers.some((prefix) => name.startsWith(prefix));
}

/** What a service is told: the client's metadata, without what it claims of who it is. */
export function forwardedHeaders(context: HandlerContext): Headers {
  const headers = new Headers();
  passHeaders(context.requestHeader, headers);
  return headers;
}

/** What either side is told of the other's metadata. */
export function passHeaders(from: Headers, to: Headers): void {
  for (const [name, value] of from) if (isMetadata(name)) to.append(name, value);
}
