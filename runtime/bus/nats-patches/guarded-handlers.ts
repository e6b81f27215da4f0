import type { NatsConnection } from "@nats-io/transport-node";

/** Where the client gives a message to its subscription; not part of its interface, and so looked at before it is used. */
interface Protocol {
  processMsg(message: { readonly subject: Uint8Array }, data: Uint8Array): void;
}

/**
 * Goes on reading when a message cannot be read, by its handler or by the client itself, whose headers are looked at only then. The client
 * ends the reading of its connection at the first error, and notices by missed pings, minutes later.
 *
 * Made for @nats-io/nats-core 3.4.0.
 */
export function guardHandlers(connection: NatsConnection, onError: (subject: string, error: unknown) => void): void {
  const { protocol } = connection as unknown as { protocol?: Partial<Protocol> };
  const process = protocol?.processMsg?.bind(protocol);
  if (!protocol || process === undefined) return; // another release of the client: it does as it does
  protocol.processMsg = (message, data) => {
    try {
      process(message, data);
    } catch (error) {
      onError(Buffer.from(message.subject).toString(), error);
    }
  };
}
