import type { ConsumerMessages } from "@nats-io/jetstream";

/** What the client keeps of its requests; not part of its interface, and so looked at before it is used. */
interface Requests {
  readonly pending?: { readonly msgs: number };
  resetPending?: () => Promise<boolean>;
}

/**
 * Asks again when no request is left. The client bounds each request by the bytes that those before leave, and the server refuses the
 * requests that have no room for its next message: after the last of them the client waits until it misses heartbeats.
 *
 * Made for @nats-io/jetstream 3.4.0.
 */
export function pullAgain(messages: ConsumerMessages): void {
  const requests = messages as unknown as Requests;
  if (requests.pending?.msgs === 0) void requests.resetPending?.();
}
