import { withoutPrincipal } from "../../../rpc/identity.ts";
import { unlessAborted } from "../../../time/unless-aborted.ts";
import type { Bus } from "../../bus.ts";
import type { Place } from "../bucket.ts";
import { standingMessages } from "../listing.ts";
import { changeFrom } from "../values.ts";
import { sharedReading } from "./shared-reading.ts";

/** What lists have to know of each value of a bucket, so that a page reads no values but those that it shows. */
export interface BucketIndex<E> extends Disposable {
  /** By key, up to what was written when it is asked for. An entry may be of a value that has left: whoever shows it reads it. */
  read(signal: AbortSignal): Promise<ReadonlyMap<string, E>>;
}

/** A removal leaves a message for a minute alone (BUCKET-6), age leaves none: so long is an entry known of what has left. */
const KNOWN_MS = 600_000;

/** Reads what was written since it was read before, whoever asked; undefined for a value is no entry. */
export function createBucketIndex<T, E>(
  bus: Bus,
  place: Place<T>,
  entryOf: (value: T) => E | undefined,
): BucketIndex<E> {
  const nothing = () => ({ reached: 0, sinceMs: performance.now(), entries: new Map<string, E>() });
  let known = nothing();
  const forget = () => {
    known = nothing();
  };
  const catchUp = sharedReading(async () => {
    if (performance.now() - known.sinceMs > KNOWN_MS) forget();
    const mine = known;
    const subjects = `$KV.${place.bucket}.${place.prefix}>`;
    for await (const message of standingMessages(bus, subjects, { fromSequence: mine.reached + 1 })) {
      const change = changeFrom(bus, place, message);
      const entry = change.kind === "set" ? entryOf(change.value) : undefined;
      if (entry === undefined) mine.entries.delete(change.key);
      else mine.entries.set(change.key, entry);
      mine.reached = change.revision;
    }
    return mine.entries;
  });
  const endReturns = bus.link.onReturn(forget); // to a server that may have lost what it had acknowledged
  return {
    read: (signal) => unlessAborted(withoutPrincipal(catchUp), signal),
    [Symbol.dispose]: () => endReturns(),
  };
}
