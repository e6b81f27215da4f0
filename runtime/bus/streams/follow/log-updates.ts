import { requireReached } from "../../../failure/sequence.ts";
import { gapUpdate, type LogUpdate, startUpdate } from "../../../rpc/watching/log-update.ts";
import type { Bus } from "../../bus.ts";
import { boundsOf, type StoredMessage } from "../read.ts";
import { followLog, type LogKind } from "./follow-log.ts";

export interface FollowUpdates<E> {
  /** As a refusal names it. */
  name: string;
  kind: LogKind;
  /** The first sequence that is wanted; 0 for all, absent for those from now on. */
  fromSequence: bigint | undefined;
  signal: AbortSignal;
  /** Undefined for what cannot be read, which is told as a gap. */
  eventFrom: (message: StoredMessage) => E | undefined;
}

/** A subject, each message of which is one event, as a watch tells it; ends quietly when the signal aborts. */
export async function* followUpdates<E>(
  bus: Bus,
  subject: string,
  { name, kind, fromSequence, signal, eventFrom }: FollowUpdates<E>,
): AsyncGenerator<LogUpdate<E>> {
  const bounds = await boundsOf(bus, subject, signal);
  const next = BigInt(bounds.next);
  requireReached(name, fromSequence ?? 0n, next);
  if (fromSequence === undefined) yield startUpdate(next);
  const from = Number(fromSequence ?? next);
  for await (const step of followLog(bus, subject, { kind, from, signal, ...bounds })) {
    const event = step.kind === "message" ? eventFrom(step.message) : undefined;
    if (event !== undefined) yield { case: "event", value: event };
    else if (step.kind === "gap") yield gapUpdate(BigInt(step.first), BigInt(step.last));
    else yield gapUpdate(BigInt(step.message.sequence), BigInt(step.message.sequence));
  }
}
