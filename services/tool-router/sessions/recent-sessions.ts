import { type Session, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import type { Bucket, Stored } from "#runtime/bus/buckets/bucket.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { SessionRecord } from "./session-record.ts";

/*
 * What was created or read of sessions a moment ago, so that not every call reads its session.
 *
 * recent-sessions-1  Only that a session is active is remembered, for a time shorter than routers are waited for when it drains: a router
 *     that hears nothing believes no longer in a former agent when the next one is built.
 * recent-sessions-2  A change that was heard or written voids older readings, also those that are under way.
 */

const FRESH_MS = 1_000;
const MOST = 4_000;

interface Known {
  readonly session: Session;
  readonly revision: number;
  readonly readAtMs: number;
}

export class RecentSessions {
  readonly #clock: Clock;
  readonly #known = new BoundedMap<string, Known>(MOST);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The session as it was a moment ago, if it was active. */
  active(id: string): Session | undefined {
    const known = this.#known.get(id);
    if (known?.session.state !== SessionState.ACTIVE || this.#clock.now() - known.readAtMs >= FRESH_MS)
      return undefined;
    return known.session;
  }

  /** recent-sessions-2 */
  put({ key, value, revision }: Stored<SessionRecord>): void {
    if (this.#known.get(key)?.revision === revision) return;
    this.#put(key, { session: value, revision, readAtMs: Number.NEGATIVE_INFINITY });
  }

  /** The same bucket, whose sessions are remembered as they are created and read. */
  remembering(bucket: Bucket<SessionRecord>): Bucket<SessionRecord> {
    return {
      ...bucket,
      create: async (key, session, headers) => {
        const readAtMs = this.#clock.now();
        const revision = await bucket.create(key, session, headers);
        if (revision !== undefined) this.#put(key, { session, revision, readAtMs });
        return revision;
      },
      read: async (key, signal) => {
        const readAtMs = this.#clock.now();
        const found = await bucket.read(key, signal);
        if (found) this.#put(key, { session: found.value, revision: found.revision, readAtMs });
        return found;
      },
      update: async (key, decide, signal) => {
        const updated = await bucket.update(key, decide, signal);
        const { value, revision, hasChanged } = updated;
        if (hasChanged && value) this.put({ key, value, revision });
        return updated;
      },
    };
  }

  #put(id: string, known: Known): void {
    if ((this.#known.get(id)?.revision ?? 0) > known.revision) return;
    this.#known.set(id, known);
  }
}
