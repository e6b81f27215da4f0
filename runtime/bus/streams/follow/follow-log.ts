/**
 * Follows a subject as a log of which nothing is lacking in silence: what was asked for and has been removed is told as a gap.
 *
 * follow-log-1  A gap is told once, before what comes after it, and names what was asked for and is missing.
 * follow-log-2  `dense`: the subject has the whole stream, so that a sequence which is not there has been removed.
 * follow-log-3  `fenced`: others share the stream, so that a sequence which is not there need not have been of this subject. But every
 *     append was fenced, and a message says in its header which one of the subject it followed: if that one was asked for and did not come,
 *     it has been removed. A subject that was emptied begins anew, which its first message does not show: then what the stream has removed
 *     decides, for whoever asks to go on.
 * follow-log-4  `consumed`: what was taken has been removed too, which leaves nothing lacking to whoever asks for what stands. Whoever asks
 *     to go on is told what the stream has removed, which is all that retention can have removed of the subject.
 */

import { PubHeaders } from "@nats-io/jetstream";
import type { MsgHdrs } from "@nats-io/transport-node";
import type { Bus } from "../../bus.ts";
import { firstAfter } from "../append/append.ts";
import { lastSequenceOf, type StoredMessage, type StreamBounds } from "../read.ts";
import { followShared } from "./shared-follow.ts";

export type LogKind = "dense" | "fenced" | "consumed";

export type LogStep = { kind: "gap"; first: number; last: number } | { kind: "message"; message: StoredMessage };

export interface FollowLog extends StreamBounds {
  readonly kind: LogKind;
  /** The first sequence that is wanted; 0 for all. */
  readonly from: number;
  readonly signal: AbortSignal;
}

/** Ends quietly when the signal aborts. */
export async function* followLog(bus: Bus, subject: string, log: FollowLog): AsyncGenerator<LogStep> {
  const { kind, from, signal } = log;
  let next = Math.max(from, 1);
  const missing = await lastMissing(bus, subject, { ...log, from: next });
  if (missing >= next) {
    yield { kind: "gap", first: next, last: missing };
    next = missing + 1;
  }
  for await (const message of followShared(bus, subject, { from: next, openFrom: log.next, signal })) {
    const before = predecessorOf(kind, message);
    if (before >= next) yield { kind: "gap", first: next, last: before }; // removed before it came
    next = message.sequence + 1;
    yield { kind: "message", message };
  }
}

/** The last of those that were asked for and are missing before what stands; less than what was asked for when none is. */
async function lastMissing(bus: Bus, subject: string, { kind, from, first, next, signal }: FollowLog): Promise<number> {
  const removed = first - 1;
  if (kind === "dense") return removed; // follow-log-2
  if (kind === "consumed") return from > 1 ? removed : 0; // follow-log-4
  if (from >= next) return 0;
  const standing = await firstAfter(bus, subject, from - 1, { signal });
  const before =
    standing === null
      ? await lastSequenceOf(bus, subject, signal)
      : predecessorOf(kind, { sequence: standing.seq, headers: standing.header });
  return before === 0 && from > 1 ? removed : before; // follow-log-3
}

function predecessorOf(kind: LogKind, message: { sequence: number; headers: MsgHdrs | undefined }): number {
  if (kind === "dense") return message.sequence - 1;
  if (kind === "consumed") return 0;
  return Number(message.headers?.get(PubHeaders.ExpectedLastSubjectSequenceHdr) || 0);
}
