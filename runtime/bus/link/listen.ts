import type { Msg, NatsConnection, Subscription, SubscriptionOptions } from "@nats-io/transport-node";

/** Hears the messages of a subject. The end of the subscription, or its refusal, is none. */
export function listen(
  { connection }: { readonly connection: NatsConnection },
  subject: string,
  onMessage: (message: Msg) => void,
  options: Pick<SubscriptionOptions, "queue"> = {},
): Subscription {
  return connection.subscribe(subject, {
    ...options,
    callback: (error, message) => {
      if (error === null) onMessage(message);
    },
  });
}
