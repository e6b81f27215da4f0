import type { StoredMsg } from "@nats-io/jetstream";
import type { MsgHdrs } from "@nats-io/transport-node";
import { openEnding } from "../../time/ending.ts";
import { timeoutSignal } from "../../time/timeout-signal.ts";
import { LONGEST_WAIT_MS } from "../../time/timer.ts";
import { unlessAborted } from "../../time/unless-aborted.ts";
import type { Bus } from "../bus.ts";
import { filterOfSubject, streamOfSubject } from "../declarations/streams-of-subjects.ts";
import { retryOnBus } from "../link/link.ts";
import { firstAfter, lastOf } from "./append/append.ts";
import { turnOfBatch } from "./batch-turns.ts";

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
  /** Whether something stands there, as far as is known: it is read while the last message is looked for. */
  isThere?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

const batchMessages = 64; // it delays what else comes over the connection
const batchBytes = 256 * 1024;
const batchMs = 10_000;

/**
 * What stands under a subject, in order, up to the last message that was acknowledged when the reading began, or as far as told. Never
 * stale, and goes on after the loss of the server where it stood. A signal that aborts ends it with the signal's reason.
 */
export async function* readSubject(
  bus: Bus,
  subject: string,
  options: ReadOptions & { toSequence?: number | undefined } = {},
): AsyncGenerator<StoredMessage> {
  const { fromSequence: first = 1, signal, toSequence, isThere = false } = options;
  const read = (sequence: number) => readBatch(bus, { subject, sequence, isFirst: sequence === first, signal });
  const ahead = isThere ? read(first) : undefined;
  ahead?.catch(() => {}); // who takes it gets the error
  const last = toSequence ?? (await lastSequenceOf(bus, subject, signal));
  let next = first;
  while (next <= last) {
    const batch = await ((next === first && ahead) || read(next));
    const messages = batch.length > 0 ? batch : [await firstAfter(bus, subject, next - 1, { signal })];
    for (const message of messages) {
      signal?.throwIfAborted();
      if (message === null) return; // what stood there has been removed meanwhile
      if (message.seq > last) return;
      const { subject: own, seq: sequence, data, header: headers, time } = message;
      yield { subject: own, sequence, data, headers, time };
      next = sequence + 1;
    }
  }
}

/** The sequence of a subject's last message, never stale; 0 when there is none. */
export async function lastSequenceOf(bus: Bus, subject: string, signal?: AbortSignal): Promise<number> {
  return (await lastOf(bus, subject, { signal }))?.seq ?? 0;
}

export interface StreamBounds {
  /** The first message that the stream has; what stood before it has been removed. */
  readonly first: number;
  /** The sequence that the stream gives next. */
  readonly next: number;
}

/** What the stream of a subject has, from its leader. */
export async function boundsOf(bus: Bus, subject: string, signal: AbortSignal): Promise<StreamBounds> {
  const read = () => bus.manager.streams.info(streamOfSubject(subject));
  const { state } = await retryOnBus(bus.link, read, { signal, what: `looking at ${subject}` });
  return { first: state.first_seq, next: state.last_seq + 1 };
}

interface Batch {
  readonly subject: string;
  readonly sequence: number;
  readonly isFirst: boolean;
  readonly signal: AbortSignal | undefined;
}

/** The wait for its turn is part of an attempt, which gives its place back when it fails; an answer's time begins with its turn. */
async function readBatch(bus: Bus, { subject, sequence, isFirst, signal }: Batch): Promise<StoredMsg[]> {
  const [stream, filter] = [streamOfSubject(subject), filterOfSubject(subject)];
  const read = async () => {
    const query = { seq: sequence, next_by_subj: filter, batch: batchMessages, max_bytes: batchBytes };
    const stored: StoredMsg[] = [];
    for await (const message of await bus.manager.direct.getBatch(stream, query)) stored.push(message);
    return stored;
  };
  const inTurn = turnOfBatch(stream, subject, isFirst);
  let ending = openEnding(signal);
  const attempt = () => {
    ending.end(); // the one before may have been given up
    ending = openEnding(signal);
    const { signal: ended } = ending;
    const answered = async () => {
      using late = timeoutSignal(batchMs);
      return await unlessAborted(read(), ended, late);
    };
    return inTurn(answered, ended);
  };
  try {
    return await retryOnBus(bus.link, attempt, { signal, attemptMs: LONGEST_WAIT_MS, what: `reading ${subject}` });
  } finally {
    ending.end();
  }
}
