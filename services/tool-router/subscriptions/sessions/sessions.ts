import type { Bus } from "#runtime/bus/bus.ts";
import { followSubject, lastSequenceOf, readSubject, type StoredMessage } from "#runtime/bus/streams/read.ts";
import { readRecord } from "#runtime/bus/streams/record.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { Stored } from "../../catalogue/documents.ts";
import { isSettled } from "../../sessions/failures.ts";
import type { SessionChanges } from "../../sessions/session-changes.ts";
import { decodeSession, type SessionRecord } from "../../sessions/session-record.ts";

const BUCKET = "toolbus_sessions";
const ALL = `$KV.${BUCKET}.>`;

/** Publishes the changes of sessions from now on. Also lists, in the background, the sessions that are being switched. */
export async function followSessions(
  bus: Bus,
  news: SessionChanges,
  onFault: (fault: string) => void,
): Promise<AsyncDisposable> {
  const closing = new AbortController();
  const { signal } = closing;
  const last = await lastSequenceOf(bus, ALL);
  const published = new Map<string, number>();

  async function follow(): Promise<void> {
    for await (const message of followSubject(bus, ALL, { fromSequence: last + 1, signal })) {
      const stored = storedFrom(bus, message);
      if (stored === undefined) continue;
      if (!hasListed) published.set(stored.key, stored.revision);
      news.publish(stored);
    }
  }

  let hasListed = false;
  async function listUnsettled(): Promise<void> {
    const standing = new Map<string, Stored<SessionRecord>>();
    for await (const message of readSubject(bus, ALL, { signal })) {
      const stored = message.sequence > last ? undefined : storedFrom(bus, message);
      if (stored === undefined) continue;
      if (isSettled(stored.value)) standing.delete(stored.key);
      else standing.set(stored.key, stored);
    }
    for (const stored of standing.values()) if (!published.has(stored.key)) news.publish(stored);
    hasListed = true;
    published.clear();
  }

  const ended = (error: unknown) => {
    if (!signal.aborted) onFault(`sessions are no longer followed: ${messageFromUnknown(error)}`);
  };
  const work = [follow().catch(ended), listUnsettled().catch(ended)];
  return {
    async [Symbol.asyncDispose]() {
      closing.abort();
      await Promise.all(work);
    },
  };
}

function storedFrom(bus: Bus, message: StoredMessage): Stored<SessionRecord> | undefined {
  if (message.data.length === 0) return undefined; // a removal
  const key = message.subject.slice(`$KV.${BUCKET}.`.length);
  const value = readRecord(bus, message, () => decodeSession(message.data));
  return value && { key, value, revision: message.sequence };
}
