import { textCodec } from "#runtime/bus/buckets/bucket.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { retryOnBus } from "#runtime/bus/link/link.ts";
import { Failure } from "#runtime/failure/failure.ts";
import type { Membership } from "../space/membership.ts";

const inboxes = "TOOLBUS_INBOX";

/** Where something of a session stands, besides its inboxes. Its agents leave their spaces first: nothing said there comes to them then. */
const buckets = ["toolbus_memory", "toolbus_active_spaces", "toolbus_inbox_seen"] as const;

export type ForgetSession = (session: { sessionId: string; isClosed: boolean }) => Promise<boolean>;

/** A space that takes no event keeps no session from being forgotten. */
function unlessFull(error: unknown): void {
  if (!(error instanceof Failure) || error.reason !== "STORE_FULL") throw error;
}

/** Whoever opens a session under the same id later must find nothing of the former one. */
export function createForgetSession(bus: Bus, { leave }: Pick<Membership, "leave">): ForgetSession {
  const { streams } = bus.manager;
  const asked = <T>(what: string, ask: () => Promise<T>) => retryOnBus(bus.link, ask, { what });
  return async ({ sessionId, isClosed }) => {
    const what = `forgetting session ${sessionId}`;
    const subject = `toolbus.inbox.${sessionId}`;
    const { state } = await asked(what, () => streams.info(inboxes, { subjects_filter: subject }));
    if (!isClosed && (state.subjects?.[subject] ?? 0) > 0) return false;
    const spaces = createBucket(bus, { bucket: "toolbus_active_spaces", prefix: `${sessionId}.`, codec: textCodec });
    for await (const { key: agent, value: spaceId } of spaces.list())
      await leave(spaceId, { sessionId, agent }).catch(unlessFull); // it stays a member, to whom nothing comes
    await asked(what, () => streams.purge(inboxes, { filter: subject }));
    for (const bucket of buckets)
      await asked(what, () => streams.purge(`KV_${bucket}`, { filter: `$KV.${bucket}.${sessionId}.>` }));
    return true;
  };
}
