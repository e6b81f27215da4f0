import type { Interceptor, StreamRequest, StreamResponse, UnaryRequest, UnaryResponse } from "@connectrpc/connect";

export type UnaryFunction = (request: UnaryRequest) => Promise<UnaryResponse>;
export type StreamFunction = (request: StreamRequest) => Promise<StreamResponse>;

/** The last interceptor stands next to the call. */
export function intercepted<F extends UnaryFunction | StreamFunction>(
  innermost: F,
  interceptors: readonly Interceptor[],
): F {
  // The innermost function and all interceptors of a call pass on requests of its kind only.
  return interceptors.reduceRight(
    (next, interceptor) => interceptor(next as Parameters<Interceptor>[0]) as F,
    innermost,
  );
}
