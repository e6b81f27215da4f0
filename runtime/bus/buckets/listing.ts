import { RoundRobinQueue } from "../../collections/turns/round-robin-queue.ts";
import { currentPrincipal } from "../../rpc/identity.ts";
import { openEnding } from "../../time/ending.ts";
import type { Bus } from "../bus.ts";
import { filterOfSubject } from "../declarations/streams-of-subjects.ts";
import { callPatience } from "../link/call-patience.ts";
import { followSubject } from "../streams/follow/follow.ts";
import { lastSequenceOf, type ReadOptions, readSubject, type StoredMessage } from "../streams/read.ts";
import type { Found, Part, Place } from "./bucket.ts";
import { changeFrom } from "./values.ts";

/** Whatever is written meanwhile: a key is missed only if it is written in each pass before its turn. */
const mostPasses = 4;
const FEW = 1_000;

/**
 * The messages of a bucket in order. Where it keeps one value of a key, one that is written anew while the others are read stands
 * behind those that stood at the beginning, so that it is read after them.
 */
export async function* standingMessages(
  bus: Bus,
  subjects: string,
  { fromSequence = 1, signal }: ReadOptions,
): AsyncGenerator<StoredMessage> {
  let next = fromSequence;
  for (let pass = 0; pass < mostPasses; pass++) {
    const toSequence = await lastSequenceOf(bus, subjects, signal);
    if (toSequence < next) return;
    const isLong = filterOfSubject(subjects) === ">" && toSequence - next > FEW;
    const ahead = isLong ? messagesOfConsumer(bus, subjects, { fromSequence: next, toSequence, signal }) : [];
    for await (const message of ahead) {
      yield message;
      next = message.sequence + 1;
    }
    yield* readSubject(bus, subjects, { fromSequence: next, toSequence, signal });
    next = toSequence + 1;
  }
}

/**
 * All of a bucket, or the first of them. A consumer costs the server a tenth of batches, for each of which it counts what is left, key by
 * key, and keeps whoever writes there waiting.
 */
async function* messagesOfConsumer(
  bus: Bus,
  subjects: string,
  { fromSequence, toSequence, signal }: ReadOptions & { toSequence: number },
): AsyncGenerator<StoredMessage> {
  using ending = openEnding(signal);
  const onIdle = () => ending.end(); // the last may have been removed
  for await (const message of followSubject(bus, subjects, { fromSequence, signal: ending.signal, onIdle })) {
    if (message.sequence <= toSequence) yield message;
    if (message.sequence >= toSequence || message.pending === 0) return;
  }
}

/** A list is held whole: a principal has one at a time. */
const turns = new RoundRobinQueue(Number.POSITIVE_INFINITY);

export async function* listValues<T>(
  bus: Bus,
  place: Place<T>,
  subjects: string,
  part: Part<T>,
): AsyncGenerator<Found<T>> {
  const sinceMs = performance.now();
  const list = () => {
    callPatience.spendIfLong(sinceMs); // the list before may have waited for the bus
    return valuesOf(bus, place, subjects, part);
  };
  yield* await turns.run(currentPrincipal() ?? place.bucket, list, part.signal);
}

async function valuesOf<T>(
  bus: Bus,
  place: Place<T>,
  subjects: string,
  { where = () => true, signal }: Part<T>,
): Promise<Iterable<Found<T>>> {
  const standing = new Map<string, Found<T>>();
  for await (const message of standingMessages(bus, subjects, { signal })) {
    const change = changeFrom(bus, place, message);
    if (change.kind === "unreadable") continue;
    if (change.kind === "set" && where(change.value)) {
      const { key, value, revision } = change;
      standing.set(key, { key, value, revision, writtenAt: message.time });
    } else standing.delete(change.key);
  }
  return standing.values();
}
