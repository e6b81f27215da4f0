/**
 * Following a subject together with others: what stands in it and then what comes, each message once and in order.
 *
 * shared-follow-1  All followers of a subject over a connection share one consumer, so that a message is delivered once however many there
 *     are. The first one opens it, the last one closes it, and what ends it (follow-4) ends all of them.
 * shared-follow-2  A follower joins, then reads what the consumer has passed, by batches that have their turns: nothing if it has passed
 *     nothing that is wanted. So what comes meanwhile waits for it, and what it has read by then is left out.
 * shared-follow-3  What the consumer began behind stands, and what it gave before. But another node may have told of that what the leader,
 *     which is read, has not come to yet: a follower that needs it ends as unavailable, before it misses anything.
 * shared-follow-4  What waits is held once for all. A follower that is too far behind loses it, and reads what stands again, from where it was.
 */

import { type Feed, Feeds } from "../../../collections/feeds/feeds.ts";
import { getOrInsertComputed } from "../../../collections/get-or-insert-computed.ts";
import { Failure } from "../../../failure/failure.ts";
import type { Bus } from "../../bus.ts";
import { callPatience } from "../../link/call-patience.ts";
import { boundsOf, readSubject, type StoredMessage } from "../read.ts";
import { followSubject } from "./follow.ts";

export interface SharedFollow {
  /** The first sequence that is wanted. */
  readonly from: number;
  /** That of the shared consumer, where this is the first follower: what stands before it can be read. */
  readonly openFrom: number;
  readonly signal: AbortSignal;
}

interface SharedConsumer extends Disposable {
  /** What stands up to here does not come any more. */
  readonly passed: number;
}

const feedsByBus = new WeakMap<Bus, Feeds<StoredMessage, SharedConsumer>>();

/** The end of the signal ends it quietly. */
export async function* followShared(
  bus: Bus,
  subject: string,
  { from, openFrom, signal }: SharedFollow,
): AsyncGenerator<StoredMessage> {
  const feeds = getOrInsertComputed(feedsByBus, bus, () => new Feeds());
  using reader = feeds.join(subject, signal, (feed) => openConsumer(bus, subject, openFrom, feed));
  let next = from;
  try {
    for (;;) {
      const { passed } = reader.source;
      if (next <= passed && (await boundsOf(bus, subject, signal)).next <= passed) throw leaderLags(subject); // shared-follow-3
      for await (const message of readSubject(bus, subject, { fromSequence: next, toSequence: passed, signal })) {
        next = message.sequence + 1;
        yield message;
      }
      for (let message = await reader.next(); message !== undefined; message = await reader.next()) {
        if (message.sequence < next) continue; // shared-follow-2
        next = message.sequence + 1;
        yield message;
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

const leaderLags = (subject: string) =>
  new Failure("unavailable", `the leader lags behind what was told of ${subject}`, { reason: "BUS_UNAVAILABLE" });

/** shared-follow-1: it waits for the bus as one call would, whoever opened it. */
function openConsumer(bus: Bus, subject: string, fromSequence: number, feed: Feed<StoredMessage>): SharedConsumer {
  const closing = new AbortController();
  const consumer = { passed: fromSequence - 1, [Symbol.dispose]: () => closing.abort() };
  const follow = async () => {
    for await (const message of followSubject(bus, subject, { fromSequence, signal: closing.signal })) {
      const data = new Uint8Array(message.data); // of its own: the connection's buffer holds others as well
      consumer.passed = message.sequence;
      feed.push({ ...message, data }, data.length);
    }
  };
  void callPatience.run(follow).catch((error: unknown) => feed.end(error));
  return consumer;
}
