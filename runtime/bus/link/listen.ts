import type { Msg, NatsConnection, Subscription, SubscriptionOptions } from "@nats-io/transport-node";
import { messageFromUnknown } from "../../failure/failure.ts";

interface Told {
  readonly connection: NatsConnection;
  readonly tellUnreadable: (message: { subject: string; sequence: number; reason: string }) => void;
}

/**
 * Hears the messages of a subject. The end of the subscription, or its refusal, is none. A message at which the handler throws is told and
 * passed over: the client would read nothing more from its connection.
 */
export function listen(
  { connection, tellUnreadable }: Told,
  subject: string,
  onMessage: (message: Msg) => void,
  options: Pick<SubscriptionOptions, "queue"> = {},
): Subscription {
  return connection.subscribe(subject, {
    ...options,
    callback: (refused, message) => {
      if (refused !== null) return;
      try {
        onMessage(message);
      } catch (error) {
        tellUnreadable({ subject: message.subject, sequence: 0, reason: messageFromUnknown(error) });
      }
    },
  });
}
