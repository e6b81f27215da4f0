/**
 * Appends to a subject of a stream. A fenced append names the sequence of the message that it follows, so that of all who
 * follow the same message, one succeeds.
 *
 * A publish that got no answer has an unknown outcome: it may have been stored, it may be stored later, or never.
 *
 * append-1  Each append carries an id of its own in a header, the same in each of its attempts: a stored message is known for
 *     one's own by it, never by its content.
 * append-2  Every attempt names the same expected sequence. So an attempt that arrives late finds its place taken, by an earlier
 *     attempt or by another writer, and is refused: an append is stored at most once.
 * append-3  If ours was stored, it is the first message of the subject after the expected one: it was accepted because nothing
 *     stood there. Others may stand after it. So that first message, read from the leader, decides: ours is success,
 *     another's is a conflict that no late attempt can undo, none means that nothing is decided and we write again.
 * append-4  A refusal proves nothing by itself: it may be due to our own earlier attempt, and a cluster refuses while an append is
 *     in flight, or while it changes its leader, though nobody else wrote. append-3 decides here too; when the expected message is
 *     still the last one, we write again.
 * append-5  append-3 holds while nobody removes messages of the subject. In a bucket only the last value stands, so that a value of ours
 *     that was already followed by another's reads as a conflict.
 */

import { type MsgRequest, PubHeaders, type SeqMsgRequest, type StoredMsg } from "@nats-io/jetstream";
import { nuid } from "@nats-io/nats-core";
import { Failure } from "../../../failure/failure.ts";
import { delay } from "../../../time/delay.ts";
import { createBackoff } from "../../../time/retry/backoff.ts";
import { unlessAborted } from "../../../time/unless-aborted.ts";
import type { Bus } from "../../bus.ts";
import { streamOfSubject } from "../../declarations/streams-of-subjects.ts";
import { callPatience } from "../../link/call-patience.ts";
import { failureFromRefusal, isConflict, isTransient } from "../../link/jetstream-errors.ts";
import { isLost, retryOnBus } from "../../link/link.ts";
import { PlainHeaders } from "../../nats-patches/plain-headers.ts";
import { publishAcknowledged } from "../acknowledged.ts";
import { maxMessageBytes, refuseTooLarge } from "../message-size.ts";

export interface FencedAppend {
  subject: string;
  /** The sequence of the subject's last message as the writer knows it; 0 for a subject without messages. */
  expectedLastSequence: number;
  payload: Uint8Array | string;
  /** Remembered by the stream for its duplicate window: a second append under the same id is stored once. */
  messageId?: string | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
  signal?: AbortSignal | undefined;
  /** After this the outcome is given up as unknown; 30 s unless told. */
  timeoutMs?: number | undefined;
}

export type AppendOutcome = { kind: "appended"; sequence: number } | { kind: "conflict" };

export type AppendOnce = Omit<FencedAppend, "expectedLastSequence" | "messageId"> & { messageId: string };

export interface ReadLimits {
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
}

const appendIdHeader = "Toolbus-Append-Id";
const attemptMs = 1_000;

type Undecided = { kind: "refused" | "unknown"; cause: unknown };

type AttemptOutcome = { kind: "appended"; sequence: number } | Undecided;

/**
 * Appends if the expected message is still the subject's last. `conflict` means that somebody else wrote and this append
 * is not and will not be stored: read, and decide again. Throws `unavailable` with reason `APPEND_UNKNOWN` when no server
 * answered in time, `resource_exhausted` when the store is full, `invalid_argument` with reason `MESSAGE_TOO_LARGE` before
 * anything is sent when the store never takes so large a message.
 */
export async function appendFenced(bus: Bus, append: FencedAppend): Promise<AppendOutcome> {
  const id = nuid.next();
  const sinceMs = performance.now();
  const timeoutMs = Math.min(append.timeoutMs ?? 30_000, bus.link.storage.patienceMs);
  const deadline = Date.now() + timeoutMs;
  const backoff = createBackoff({ initialMs: 5, maxMs: 250 });
  if (!isFarBelowLimit(bus, append)) refuseTooLarge(bus, { ...append, headers: allHeaders(append, id) });
  await whenUp(bus, append);
  bus.link.storage.refuseWrites(`appending to ${append.subject}`);
  for (;;) {
    const outcome = await attempt(bus, append, id, deadline);
    if (outcome.kind === "appended") {
      bus.link.storage.stored(streamOfSubject(append.subject));
      callPatience.spendIfLong(sinceMs);
      return outcome;
    }
    append.signal?.throwIfAborted();
    const decided = await decideByReading(bus, append, { id, deadline, outcome });
    if (decided !== undefined) return decided;
    if (Date.now() >= deadline) throw unknownOutcome(bus, append, outcome.cause);
    await delay(backoff.next(), append.signal);
  }
}

/**
 * Appends whatever stands there, once within the stream's duplicate window however often it is repeated under its message
 * id, also by another process.
 */
export async function appendOnce(bus: Bus, append: AppendOnce): Promise<{ sequence: number }> {
  const { subject, payload, messageId, signal } = append;
  if (!isFarBelowLimit(bus, append))
    refuseTooLarge(bus, { subject, payload, headers: allHeaders({ ...append, expectedLastSequence: 0 }, "") });
  const fields = headersFrom(append.headers);
  fields.set(PubHeaders.MsgIdHdr, messageId);
  const publish = () =>
    publishAcknowledged(bus, { subject, payload, headers: fields, timeoutMs: attemptMs }).catch((error: unknown) => {
      throw failureFromRefusal(error, streamOfSubject(subject)) ?? error;
    });
  const ends = { signal, timeoutMs: append.timeoutMs ?? 30_000, what: `appending to ${subject}` };
  if (bus.link.isUp) {
    const first = await unlessAborted(publish(), signal).catch(() => undefined); // what is to be said of it, the next one meets
    if (first !== undefined) return { sequence: first };
  }
  return { sequence: await retryOnBus(bus.link, publish, ends) };
}

async function attempt(bus: Bus, append: FencedAppend, id: string, deadline: number): Promise<AttemptOutcome> {
  const timeoutMs = Math.min(attemptMs, Math.max(deadline - Date.now(), 1));
  try {
    const { subject, payload } = append;
    const sequence = await publishAcknowledged(bus, { subject, payload, headers: allHeaders(append, id), timeoutMs });
    return { kind: "appended", sequence };
  } catch (error) {
    if (isConflict(error)) return { kind: "refused", cause: error };
    const refusal = failureFromRefusal(error, streamOfSubject(append.subject));
    if (refusal !== undefined) throw refusal;
    if (isTransient(error) || bus.link.down.aborted || isLost(error)) return { kind: "unknown", cause: error };
    throw error;
  }
}

/** What the headers of an append take at most, beside those that its caller gives. */
const headerBytes = 1_024;

/** Most appends are: then nothing has to be made to be measured. */
function isFarBelowLimit(bus: Bus, append: Omit<FencedAppend, "expectedLastSequence">): boolean {
  const { subject, payload, headers: fields, messageId = "" } = append;
  let bytes = headerBytes + Buffer.byteLength(payload) + Buffer.byteLength(messageId);
  for (const name in fields) bytes += Buffer.byteLength(name) + Buffer.byteLength(fields[name] ?? "") + 4;
  return bytes <= maxMessageBytes(bus, subject);
}

/** What is sent without a server is lost: then nothing has been attempted, and nothing is unknown. */
async function whenUp(bus: Bus, append: FencedAppend): Promise<void> {
  if (bus.link.isUp) return append.signal?.throwIfAborted();
  const ends = { signal: append.signal, timeoutMs: append.timeoutMs ?? 30_000 };
  await retryOnBus(bus.link, async () => {}, { ...ends, what: `appending to ${append.subject}` });
}

/** append-3 and append-4; undefined when nothing is decided. */
async function decideByReading(
  bus: Bus,
  append: FencedAppend,
  { id, deadline, outcome }: { id: string; deadline: number; outcome: Undecided },
): Promise<AppendOutcome | undefined> {
  const { subject, expectedLastSequence, signal } = append;
  const limits = { signal, timeoutMs: Math.max(deadline - Date.now(), 1) };
  try {
    const stored = await firstAfter(bus, subject, expectedLastSequence, limits);
    if (stored?.header.get(appendIdHeader) === id) return { kind: "appended", sequence: stored.seq };
    if (stored !== null) return { kind: "conflict" };
    if (outcome.kind === "unknown") return undefined;
    const last = (await lastOf(bus, subject, limits))?.seq ?? 0;
    return last === expectedLastSequence ? undefined : { kind: "conflict" };
  } catch (error) {
    signal?.throwIfAborted();
    throw unknownOutcome(bus, append, error instanceof Failure ? outcome.cause : error);
  }
}

/** The first message of a subject after a sequence, read from the stream's leader; null when there is none. */
export async function firstAfter(
  bus: Bus,
  subject: string,
  sequence: number,
  limits: ReadLimits = {},
): Promise<StoredMsg | null> {
  const query: SeqMsgRequest & { next_by_subj: string } = { seq: sequence + 1, next_by_subj: subject };
  return readMessage(bus, subject, query, limits);
}

/** In April 2262: a server counts nanoseconds since 1970 in 64 bits, and takes a later time for one that is long past. */
const LATEST_MS = 9_223_372_036_000;

/** The first message of a subject that was stored at a time or after it, read from the stream's leader; null when there is none. */
export async function firstSince(bus: Bus, subject: string, time: Date, limits: ReadLimits): Promise<StoredMsg | null> {
  const heldMs = Math.min(Math.max(time.getTime(), 0), LATEST_MS);
  // the server takes a time in the place of a sequence, which the client's type does not name
  const query = { start_time: new Date(heldMs).toISOString(), next_by_subj: subject } as object as MsgRequest;
  return readMessage(bus, subject, query, limits);
}

/** The last message of a subject, read from the stream's leader; null when there is none. */
export async function lastOf(bus: Bus, subject: string, limits: ReadLimits = {}): Promise<StoredMsg | null> {
  return readMessage(bus, subject, { last_by_subj: subject }, limits);
}

function readMessage(bus: Bus, subject: string, query: MsgRequest, limits: ReadLimits): Promise<StoredMsg | null> {
  const read = () => bus.manager.streams.getMessage(streamOfSubject(subject), query);
  return retryOnBus(bus.link, read, { ...limits, what: `reading ${subject}` });
}

function allHeaders({ headers: fields, expectedLastSequence, messageId }: FencedAppend, id: string) {
  const all = headersFrom(fields);
  all.set(appendIdHeader, id); // append-1
  all.set(PubHeaders.ExpectedLastSubjectSequenceHdr, String(expectedLastSequence)); // append-2
  if (messageId !== undefined) all.set(PubHeaders.MsgIdHdr, messageId);
  return all;
}

function headersFrom(fields: Readonly<Record<string, string>> = {}) {
  const result = new PlainHeaders();
  for (const name in fields) result.set(name, fields[name] ?? "");
  return result;
}

function unknownOutcome(bus: Bus, { subject }: FencedAppend, cause: unknown): Failure {
  const why = bus.link.storage.notStored(streamOfSubject(subject), cause);
  return new Failure("unavailable", `no server said whether the append to ${subject} was stored: ${why}`, {
    reason: "OUTCOME_UNKNOWN",
    cause,
  });
}
