import { createInbox, type NatsConnection } from "@nats-io/nats-core";

/** A fresh subject for answers, where this connection may listen and no other login can. */
export function openInbox(connection: NatsConnection): string {
  return createInbox(prefixOf(connection));
}

/** Whether a subject is one for answers, where nothing is stored and nobody serves. */
export const isInbox = (subject: string) => subject.startsWith("_INBOX.");

/** The library does not show its options in its types. */
function prefixOf(connection: NatsConnection): string | undefined {
  if (!("options" in connection)) return undefined;
  const options = connection.options as { inboxPrefix?: string } | undefined;
  return options?.inboxPrefix;
}
