import { randomUUID } from "node:crypto";
import type { NatsConnection } from "@nats-io/nats-core";

/** A fresh subject for answers that nobody can guess, where this connection may listen and no other login can. */
export function openInbox(connection: NatsConnection): string {
  return `${prefixOf(connection) ?? "_INBOX"}.${randomUUID()}`;
}

/** Whether a subject is one for answers, where nothing is stored and nobody serves. */
export const isInbox = (subject: string) => subject.startsWith("_INBOX.");

/** The library does not show its options in its types. */
function prefixOf(connection: NatsConnection): string | undefined {
  if (!("options" in connection)) return undefined;
  const options = connection.options as { inboxPrefix?: string } | undefined;
  return options?.inboxPrefix;
}
