import { Failure } from "../failure/failure.ts";

/**
 * Ends what would keep a server from draining: watches, and streams that last. Their clients are told to ask again, which
 * leads them to another instance. To be disposed before the server.
 */
export function createStopping(then = "watch again"): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      const message = `this instance stops: ${then}`;
      controller.abort(new Failure("unavailable", message, { reason: "INSTANCE_STOPPING" }));
    },
  };
}
