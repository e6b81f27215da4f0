import type { ConsumerMessages, JsMsg } from "@nats-io/jetstream";

/**
 * The messages of a consumer as they come, until a signal aborts or the consumer is lost, both of which end them quietly. Whoever leaves
 * early stops them too.
 */
export async function* messagesUntil(messages: ConsumerMessages, signal: AbortSignal): AsyncGenerator<JsMsg> {
  const stop = () => messages.stop();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  void whenLost(messages).then(stop);
  try {
    yield* messages;
  } finally {
    signal.removeEventListener("abort", stop);
    stop();
  }
}

/**
 * Resolves when the consumer has fallen silent, or has left out a message; and when its messages are stopped. The client would wait for
 * it, or make it anew, on the node where it was: one that is dead answers neither.
 */
async function whenLost(messages: ConsumerMessages): Promise<void> {
  for await (const { type } of messages.status()) if (type === "heartbeats_missed" || type === "reset") return;
}
