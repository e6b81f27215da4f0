import type { ConsumerMessages, JsMsg } from "@nats-io/jetstream";

/** The messages of a consumer as they come, until a signal aborts, which ends them quietly. Whoever leaves early stops them too. */
export async function* messagesUntil(messages: ConsumerMessages, signal: AbortSignal): AsyncGenerator<JsMsg> {
  const stop = () => messages.stop();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    yield* messages;
  } finally {
    signal.removeEventListener("abort", stop);
    stop();
  }
}
