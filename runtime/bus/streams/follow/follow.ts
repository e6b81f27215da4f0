/**
 * Following a stream: what stands in it and then what comes, each message once and in order, until a signal aborts.
 *
 * follow-1  A follower has a consumer of its own, on one node. It is lost with the server, when it is removed, when it has been silent for 2 to
 *     3 s, and when it leaves out a message: then another one goes on from there. A reader that is slow for as long may get another one, too.
 * follow-2  For minutes a cluster places one consumer in three on a node that has died, and these are never answered. So each attempt is for a
 *     consumer of its own, soon after the first there is another one, and the first that comes to something is taken.
 * follow-3  Names are chosen here, so that a consumer is removed although its answer never came. What could not be removed goes by itself.
 * follow-4  A refusal that does not pass by itself, as of a store that is gone, ends the following. Whoever listens to interruptions is told
 *     of it instead, and it is tried again.
 */

import type { ConsumerMessages } from "@nats-io/jetstream";
import { nanos, nuid } from "@nats-io/nats-core";
import { delay } from "../../../time/delay.ts";
import { openEnding } from "../../../time/ending.ts";
import { createBackoff } from "../../../time/retry/backoff.ts";
import type { Bus } from "../../bus.ts";
import { streamOfSubject } from "../../declarations/streams-of-subjects.ts";
import { isPassing } from "../../link/jetstream-errors.ts";
import { retryOnBus } from "../../link/link.ts";
import type { ReadOptions, StoredMessage } from "../read.ts";
import { messagesUntil } from "./messages-until.ts";

export interface FollowOptions extends ReadOptions {
  /**
   * Told when the consumer is lost, and when another one goes on in its place. Nothing that stands is missed between the two; of
   * what was removed meanwhile there may be no trace. With the reason if it does not pass by itself (follow-4).
   */
  onInterrupted?: ((cause?: unknown) => void) | undefined;
  onResumed?: (() => void) | undefined;
}

/** Of one stream; all of it unless told. */
export interface Followed {
  readonly stream: string;
  readonly filter_subject?: string;
  /** Without their content. */
  readonly headers_only?: boolean;
}

const ofFollower = {
  ack_policy: "none",
  deliver_policy: "by_start_sequence",
  inactive_threshold: nanos(30_000),
  max_deliver: 1,
  mem_storage: true,
  num_replicas: 1,
} as const;
const consuming = { max_messages: 256, expires: 10_000, idle_heartbeat: 1_000, bind: true };
const refusedMs = 5_000;
const opening = { initialMs: 500, maxMs: 3_000 };
const removing = { timeoutMs: 15_000, attemptMs: 2_000, what: "removing a consumer" };
const signsOfLoss = new Set(["heartbeats_missed", "consumer_deleted", "no_responders"]);

export interface FollowedMessage extends StoredMessage {
  /** How many stand behind it. */
  readonly pending: number;
}

/** What stands under a subject and then what comes. The end of the signal ends it quietly. */
export const followSubject = (bus: Bus, subject: string, options?: FollowOptions) =>
  followStream(bus, { stream: streamOfSubject(subject), filter_subject: subject }, options);

/** The same of a stream. */
export async function* followStream(
  bus: Bus,
  followed: Followed,
  options: FollowOptions = {},
): AsyncGenerator<FollowedMessage> {
  const { fromSequence = 1, signal, onInterrupted, onResumed } = options;
  const backoff = createBackoff({ initialMs: 20, maxMs: 1_000 });
  let next = fromSequence;
  let wasOpen = false;
  while (!signal?.aborted) {
    let cause: unknown;
    try {
      using following = await openFollowing(bus, followed, next, signal);
      if (wasOpen) onResumed?.();
      wasOpen = true;
      using ending = openEnding(signal, bus.link.down, following.lost);
      let delivered = 0;
      for await (const message of messagesUntil(following.messages, ending.signal)) {
        delivered += 1;
        const { subject, seq: sequence, data, headers, time, info } = message;
        if (info.deliverySequence !== delivered) break; // follow-1
        next = sequence + 1;
        backoff.reset();
        yield { subject, sequence, data, headers, time, pending: info.pending };
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (!isPassing(error)) cause = error;
      if (cause !== undefined && onInterrupted === undefined) throw error;
    }
    if ((wasOpen || cause !== undefined) && !signal?.aborted) onInterrupted?.(cause);
    await delay(cause === undefined ? backoff.next() : refusedMs, signal).catch(() => {}); // aborted: the loop's condition sees it
  }
}

/** One consumer's life. */
interface Following extends Disposable {
  readonly messages: ConsumerMessages;
  readonly lost: AbortSignal;
}

/** follow-2 */
async function openFollowing(
  bus: Bus,
  followed: Followed,
  sequence: number,
  signal: AbortSignal | undefined,
): Promise<Following> {
  const underWay = new Set<Promise<Following>>();
  const open = async () => {
    const last = createConsumer(bus, followed, sequence);
    underWay.add(last);
    last.catch(() => underWay.delete(last));
    return Promise.any(underWay).catch(({ errors }: AggregateError) => Promise.reject(errors.at(-1)));
  };
  let taken: Following | undefined;
  try {
    const { next: attemptMs } = createBackoff(opening);
    const what = `following ${followed.filter_subject ?? followed.stream}`;
    taken = await retryOnBus(bus.link, open, { signal, attemptMs, what });
    return taken;
  } finally {
    const closeOther = (other: Following) => (other === taken ? undefined : other[Symbol.dispose]());
    for (const other of underWay) other.then(closeOther, () => {}); // who failed has closed itself
  }
}

/** follow-3 */
async function createConsumer(bus: Bus, { stream, ...filter }: Followed, sequence: number): Promise<Following> {
  const name = nuid.next();
  const remove = () => {
    const removed = retryOnBus(bus.link, () => bus.manager.consumers.delete(stream, name), removing);
    removed.catch(() => {}); // it is not there, or goes by itself
  };
  try {
    const start = { ...ofFollower, ...filter, name, opt_start_seq: sequence };
    const consumer = bus.jetstream.consumers.getConsumerFromInfo(await bus.manager.consumers.add(stream, start));
    const messages = await consumer.consume(consuming);
    const dispose = () => {
      messages.stop();
      remove();
    };
    return { messages, lost: lossOf(messages), [Symbol.dispose]: dispose };
  } catch (error) {
    remove();
    throw error;
  }
}

/** Aborts when the consumer shows a sign of loss: the client would wait for it where it was, on a node that may be dead. */
function lossOf(messages: ConsumerMessages): AbortSignal {
  const lost = new AbortController();
  void (async () => {
    for await (const { type } of messages.status()) if (signsOfLoss.has(type)) return lost.abort();
  })();
  return lost.signal;
}
