import type { StreamRequest, StreamResponse, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import type { CallContext } from "./handler-context.ts";

/*
 * A call of an implementation as its interceptors see it. What nobody asks for is left to the context: properties are accessors,
 * which an interceptor may read or copy.
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
    get signal() {
      return context.signal;
    },
    get header() {
      return context.requestHeader;
    },
    get contextValues() {
      return context.values;
    },
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
    get header() {
      return context.responseHeader;
    },
    get trailer() {
      return context.responseTrailer;
    },
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
