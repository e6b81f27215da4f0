import type { Consumer, ConsumerMessages, JsMsg, StoredMsg } from "@nats-io/jetstream";
import type { MsgHdrs } from "@nats-io/transport-node";
import { delay } from "../../time/delay.ts";
import { openEnding } from "../../time/ending.ts";
import { createBackoff } from "../../time/retry/backoff.ts";
import type { Bus } from "../bus.ts";
import { streamOfSubject } from "../declarations/streams-of-subjects.ts";
import { isPassing } from "../link/jetstream-errors.ts";
import { retryOnBus } from "../link/link.ts";
import { firstAfter, lastOf } from "./append.ts";
import { messagesUntil } from "./messages-until.ts";

/** A message as it stands in its stream. */
export interface StoredMessage {
  readonly subject: string;
  /** Its place in the stream, which is shared with other subjects: it grows, with gaps. */
  readonly sequence: number;
  readonly data: Uint8Array;
  readonly headers: MsgHdrs | undefined;
  readonly time: Date;
}

export interface ReadOptions {
  /** The first sequence of interest; everything that stands unless told. */
  fromSequence?: number | undefined;
  signal?: AbortSignal | undefined;
}

export interface FollowOptions extends ReadOptions {
  /**
   * Told when the consumer is lost, and when another one goes on in its place. Nothing that stands is missed between the two; of
   * what was removed meanwhile there may be no trace.
   */
  onInterrupted?: (() => void) | undefined;
  onResumed?: (() => void) | undefined;
}

const batchMessages = 256;
const batchBytes = 8 * 1024 * 1024;
const batchMs = 10_000;
const opening = { initialMs: 500, maxMs: 3_000 };

/**
 * What stands under a subject, in order, up to the last message that was acknowledged when the reading began, or as far as told. Never
 * stale, and goes on after the loss of the server where it stood. A signal that aborts ends it with the signal's reason.
 */
export async function* readSubject(
  bus: Bus,
  subject: string,
  options: ReadOptions & { toSequence?: number | undefined } = {},
): AsyncGenerator<StoredMessage> {
  const { signal, toSequence } = options;
  const last = toSequence ?? (await lastSequenceOf(bus, subject, signal));
  let next = options.fromSequence ?? 1;
  while (next <= last) {
    const batch = await readBatch(bus, subject, next, signal);
    const messages = batch.length > 0 ? batch : [await firstAfter(bus, subject, next - 1, { signal })];
    for (const message of messages) {
      if (message === null) return; // what stood there has been removed meanwhile
      if (message.seq > last) return;
      yield messageFromStored(message);
      next = message.seq + 1;
    }
  }
}

/** The sequence of a subject's last message, never stale; 0 when there is none. */
export async function lastSequenceOf(bus: Bus, subject: string, signal?: AbortSignal): Promise<number> {
  return (await lastOf(bus, subject, { signal }))?.seq ?? 0;
}

/**
 * What stands under a subject and then what comes, each message once and in order, until the signal aborts, which ends the
 * iteration quietly. The loss of the server, or of the consumer, interrupts it and ends nothing.
 */
export async function* followSubject(
  bus: Bus,
  subject: string,
  options: FollowOptions = {},
): AsyncGenerator<StoredMessage> {
  const { fromSequence = 1, signal, onInterrupted, onResumed } = options;
  const backoff = createBackoff({ initialMs: 20, maxMs: 1_000 });
  let next = fromSequence;
  let wasOpen = false;
  while (!signal?.aborted) {
    try {
      using following = await openFollowing(bus, subject, next, signal);
      if (wasOpen) onResumed?.();
      wasOpen = true;
      using ending = openEnding(signal, bus.link.down);
      for await (const message of messagesUntil(following.messages, ending.signal)) {
        if (message.seq < next) continue;
        next = message.seq + 1;
        backoff.reset();
        yield messageFromConsumed(message);
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (!isPassing(error)) throw error;
    }
    // the server was lost, or the consumer: another one goes on from where this one stood
    if (wasOpen && !signal?.aborted) onInterrupted?.();
    await delay(backoff.next(), signal).catch(() => {}); // aborted: the loop's condition sees it
  }
}

/** One consumer's life. */
type Following = Disposable & { readonly messages: ConsumerMessages };

/**
 * Of several attempts the first that comes to something is taken; the others are closed, also those that do so later. For minutes a
 * cluster places one in three on a node that has died, and these are never answered: each attempt is for a consumer of its own, and soon
 * after the first there is another one.
 */
async function openFollowing(bus: Bus, subject: string, sequence: number, signal?: AbortSignal): Promise<Following> {
  const stream = streamOfSubject(subject);
  const underWay = new Set<Promise<Following>>();
  const attempt = async (): Promise<Following> => {
    // the client notes the consumer's name in the object that it is given
    const start = { filter_subjects: subject, deliver_policy: "by_start_sequence" as const, opt_start_seq: sequence };
    const consumer = await bus.jetstream.consumers.get(stream, start);
    const messages = await consumer.consume({ max_messages: batchMessages, expires: 10_000, idle_heartbeat: 1_000 });
    return { messages, [Symbol.dispose]: () => close(consumer, messages) };
  };
  const open = async () => {
    const last = attempt();
    underWay.add(last);
    last.catch(() => underWay.delete(last));
    return Promise.any(underWay).catch(({ errors }: AggregateError) => Promise.reject(errors.at(-1)));
  };
  let taken: Following | undefined;
  try {
    const { next: attemptMs } = createBackoff(opening);
    taken = await retryOnBus(bus.link, open, { signal, attemptMs, what: `following ${subject}` });
    return taken;
  } finally {
    const closeOther = (other: Following) => (other === taken ? undefined : other[Symbol.dispose]());
    for (const other of underWay) other.then(closeOther, () => {}); // an attempt that failed left nothing
  }
}

/**
 * Without removing it the server would keep an ordered consumer for five minutes. Nobody waits for that, and it may fail.
 * Messages that nobody iterates are stopped and never closed: their `close()` would wait for the iteration's end.
 */
function close(consumer: Consumer, messages: ConsumerMessages): void {
  messages.stop();
  void consumer.delete().catch(() => {}); // the server is gone, or the consumer is
}

async function readBatch(bus: Bus, subject: string, sequence: number, signal?: AbortSignal): Promise<StoredMsg[]> {
  const read = async () => {
    const query = { seq: sequence, next_by_subj: subject, batch: batchMessages, max_bytes: batchBytes };
    const stored: StoredMsg[] = [];
    for await (const message of await bus.manager.direct.getBatch(streamOfSubject(subject), query))
      stored.push(message);
    return stored;
  };
  return retryOnBus(bus.link, read, { signal, attemptMs: batchMs, what: `reading ${subject}` });
}

function messageFromStored(message: StoredMsg): StoredMessage {
  const { subject, seq, data, header, time } = message;
  return { subject, sequence: seq, data, headers: header, time };
}

function messageFromConsumed(message: JsMsg): StoredMessage {
  const { subject, seq, data, headers, time } = message;
  return { subject, sequence: seq, data, headers, time };
}
