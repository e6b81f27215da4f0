import type { StreamRequest, StreamResponse, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import type { CallContext } from "./handler-context.ts";

/*
 * A call of an implementation as its interceptors see it. All is made before anybody asks: literals with accessors cost more, as
 * V8 makes a shape for each of them, and links these shapes so that those of old calls keep what later ones hold.
 */

export function requestFrom<R extends UnaryRequest | StreamRequest>(
  context: CallContext,
  stream: R["stream"],
  message: R["message"],
): R {
  return {
    stream,
    method: context.method,
    service: context.service,
    requestMethod: context.requestMethod,
    url: context.url,
    message,
    signal: context.signal,
    header: context.requestHeader,
    contextValues: context.values,
  } as R; // the context's method is of its kind
}

export function responseFrom<R extends UnaryResponse | StreamResponse>(
  context: CallContext,
  stream: R["stream"],
  message: R["message"],
): R {
  return {
    stream,
    method: context.method,
    service: context.service,
    message,
    header: context.responseHeader,
    trailer: context.responseTrailer,
  } as R; // likewise
}

/** What interceptors answered in place of what the implementation did. */
export function copyMetadata(response: UnaryResponse | StreamResponse, context: CallContext): void {
  replaceMetadata(response.header, context.responseHeader);
  replaceMetadata(response.trailer, context.responseTrailer);
}

function replaceMetadata(from: Headers, to: Headers): void {
  if (from === to) return;
  for (const key of [...to.keys()]) to.delete(key);
  from.forEach((value, key) => {
    to.set(key, value);
  });
}
