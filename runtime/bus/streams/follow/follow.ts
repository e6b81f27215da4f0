/**
 * Following a stream: what stands in it and then what comes, each message once and in order, until a signal aborts.
 *
 * follow-1  A follower has a consumer of its own, on one node. It is lost with the server, when it is removed, when it has been silent for 2 to
 *     3 s, and when a message shows that one before it was left out: then another one goes on from there. A reader that is slow for as long
 *     may get another one, too.
 * follow-2  For minutes a cluster places one consumer in three on a node that has died, and these are never answered. So each attempt is for a
 *     consumer of its own, soon after the first there is another one, and the first that comes to something is taken.
 * follow-3  Names are chosen here, so that a consumer is removed although its answer never came. What could not be removed goes by itself.
 * follow-4  A refusal that does not pass by itself, as of a store without room for consumers, ends the following. Whoever listens to
 *     interruptions is told of it instead, and it is tried again. A store that was made anew, and the end of the connection, end it.
 */

import type { ConsumerMessages } from "@nats-io/jetstream";
import { errors, nanos, nuid } from "@nats-io/nats-core";
import { Failure } from "../../../failure/failure.ts";
import { delay } from "../../../time/delay.ts";
import { openEnding } from "../../../time/ending.ts";
import { createBackoff } from "../../../time/retry/backoff.ts";
import { retryWhile } from "../../../time/retry/retry.ts";
import type { Bus } from "../../bus.ts";
import { streamOfSubject } from "../../declarations/streams-of-subjects.ts";
import { isTransient } from "../../link/jetstream-errors.ts";
import { retryOnBus } from "../../link/link.ts";
import { pullAgain } from "../../nats-patches/pull-again.ts";
import type { ReadOptions, StoredMessage } from "../read.ts";
import { messagesUntil } from "./messages-until.ts";

export interface FollowOptions extends ReadOptions {
  /**
   * Told when the consumer is lost or refused, and when another one goes on in its place. Nothing that stands is missed between the two; of
   * what was removed meanwhile there may be no trace. With the reason if it does not pass by itself (follow-4).
   */
  onInterrupted?: ((cause?: unknown) => void) | undefined;
  onResumed?: (() => void) | undefined;
  /** Told about once a second while the server has nothing more to give. What it gave before need not have been read yet. */
  onIdle?: (() => void) | undefined;
}

/** Of one stream; all of it unless told. */
export interface StreamFilter {
  readonly stream: string;
  readonly filter_subject?: string;
  /** Without their content. */
  readonly headers_only?: boolean;
}

export interface FollowedMessage extends StoredMessage {
  /** How many stand behind it. */
  readonly pending: number;
}

const ofFollower = {
  ack_policy: "none",
  deliver_policy: "by_start_sequence",
  inactive_threshold: nanos(30_000),
  max_deliver: 1,
  mem_storage: true,
  num_replicas: 1,
} as const;
/** What is on its way is bounded by bytes: nats-server cuts a connection for which 64 MiB wait. */
const onItsWay = { max_bytes: 4 * 1024 * 1024, threshold_bytes: 2 * 1024 * 1024 };
/** `bind` keeps the client from asking for a consumer that is silent, on a node that may be dead. */
const consuming = { ...onItsWay, expires: 10_000, idle_heartbeat: 1_000, bind: true };
const signsOfLoss = new Set(["heartbeats_missed", "consumer_deleted", "no_responders"]);
const reopening = { initialMs: 20, maxMs: 1_000 };
const refused = { initialMs: 5_000, maxMs: 5_000 };
/** In an election all followers remove what they had. */
const removing = { initialMs: 2_000, maxMs: 5_000, attempts: 4 };

/** What stands under a subject and then what comes. The end of the signal ends it quietly. */
export const followSubject = (bus: Bus, subject: string, options?: FollowOptions) =>
  followStream(bus, { stream: streamOfSubject(subject), filter_subject: subject }, options);

/** The same of a stream. */
export async function* followStream(
  bus: Bus,
  filter: StreamFilter,
  options: FollowOptions = {},
): AsyncGenerator<FollowedMessage> {
  const { fromSequence = 1, signal, onInterrupted, onResumed } = options;
  const backoff = createBackoff(reopening);
  const look = () => bus.manager.streams.info(filter.stream);
  let next = fromSequence;
  let state: "new" | "open" | "interrupted" = "new";
  let created: string | undefined;
  while (!signal?.aborted) {
    let cause: unknown;
    try {
      using consumer = await openConsumer(bus, filter, { ...options, fromSequence: next });
      const standing = await retryOnBus(bus.link, look, { signal, what: `looking at ${filter.stream}` });
      created ??= standing.created;
      if (created !== standing.created) throw new MadeAnew(filter.stream);
      if (state === "interrupted") onResumed?.();
      state = "open";
      using ending = openEnding(signal, bus.link.down);
      let delivered = 0;
      for await (const message of messagesUntil(consumer.messages, ending.signal)) {
        delivered += 1;
        const { subject, seq: sequence, data, headers, time, info } = message;
        if (info.deliverySequence !== delivered) break; // follow-1
        next = sequence + 1;
        backoff.reset();
        yield { subject, sequence, data, headers, time, pending: info.pending };
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (!isTransient(error)) cause = error;
      const mayPass = onInterrupted !== undefined && !bus.connection.isClosed() && !(error instanceof MadeAnew);
      if (cause !== undefined && !mayPass) throw error; // follow-4
    }
    if (signal?.aborted) return;
    if (state === "open" || cause !== undefined) state = "interrupted";
    if (state === "interrupted") onInterrupted?.(cause);
    const { next: waitMs } = cause === undefined ? backoff : createBackoff(refused);
    await delay(waitMs(), signal).catch(() => {}); // aborted: the loop's condition sees it
  }
}

/** Sequences count from 1 again. */
class MadeAnew extends Failure {
  constructor(stream: string) {
    super("data_loss", `${stream} was removed and made anew: start the suite again`, { reason: "RECORD_LOST" });
  }
}

/** One consumer's life. Its messages end when it shows a sign of loss: the client would wait for it where it was. */
type OpenConsumer = Disposable & { readonly messages: ConsumerMessages };

/** follow-2 */
async function openConsumer(bus: Bus, filter: StreamFilter, options: FollowOptions): Promise<OpenConsumer> {
  const underWay = new Set<Promise<OpenConsumer>>();
  const attemptMs = () => Math.min(500 * 2 ** underWay.size, 3_000);
  const open = async () => {
    const last = createConsumer(bus, filter, options);
    underWay.add(last);
    last.catch(() => underWay.delete(last));
    return Promise.any(underWay).catch(({ errors }: AggregateError) => Promise.reject(errors.at(-1)));
  };
  let taken: OpenConsumer | undefined;
  try {
    const what = `following ${filter.filter_subject ?? filter.stream}`;
    taken = await retryOnBus(bus.link, open, { signal: options.signal, attemptMs, what });
    return taken;
  } finally {
    const closeOther = (other: OpenConsumer) => (other === taken ? undefined : other[Symbol.dispose]());
    for (const other of underWay) other.then(closeOther, () => {}); // who failed has closed itself
  }
}

/** follow-3 */
async function createConsumer(
  bus: Bus,
  { stream, ...filter }: StreamFilter,
  { fromSequence = 1, onIdle }: FollowOptions,
): Promise<OpenConsumer> {
  const name = nuid.next();
  const removeWell = async () => {
    await bus.link.whenUp();
    const signal = bus.link.down; // those that a lost server has go by themselves
    await retryWhile(isTransient, () => bus.manager.consumers.delete(stream, name), { ...removing, signal });
  };
  const remove = () => void removeWell().catch(() => {}); // it is not there, or goes by itself
  try {
    const start = { ...ofFollower, ...filter, name, opt_start_seq: fromSequence };
    const consumer = bus.jetstream.consumers.getConsumerFromInfo(await bus.manager.consumers.add(stream, start));
    const messages = await consumer.consume(consuming);
    const dispose = () => {
      messages.stop();
      remove();
    };
    void (async () => {
      for await (const { type } of messages.status()) {
        if (type === "heartbeat") onIdle?.();
        if (type === "discard") pullAgain(messages);
        if (signsOfLoss.has(type)) messages.stop();
      }
    })();
    return { messages, [Symbol.dispose]: dispose };
  } catch (error) {
    if (error instanceof errors.TimeoutError) remove(); // nobody said that there is none
    throw error;
  }
}
