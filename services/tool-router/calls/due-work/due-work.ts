import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import type { Audit } from "#runtime/audit/trail.ts";
import { type Answer, failure } from "../answers/answer.ts";
import type { Messages } from "../messages.ts";
import { auditedFacts, type CallRecord } from "../records/record/call-record.ts";
import { hasExpired, isExternal, isOpen } from "../records/record/states.ts";
import type { RunningCalls } from "../records/running.ts";
import type { CallStore, RecordingParts } from "../records/store.ts";
import type { LostWatchers } from "../watchers/lost-watchers.ts";
import type { CallQueue } from "../watchers/ports.ts";
import { heldCheckAt, isWaitOver, nextCheckAt } from "./due.ts";

export interface DueWorkerParts extends RecordingParts {
  running: Pick<RunningCalls, "isHeld">;
  messages: Pick<Messages, "showResultOnce" | "deliver">;
  queue: CallQueue;
  lostWatchers: LostWatchers;
}

/** Does the work that is due on a call. Doing it twice does no harm. */
export function createDueWorker({ store, running, messages, queue, lostWatchers, audit, clock }: DueWorkerParts) {
  /** TOOL-9 and TOOL-10: sends the result to the waiting routers, to the space, and to the inbox. */
  async function notify(record: CallRecord): Promise<undefined> {
    store.announce(record.callId);
    if (record.result === undefined) return;
    await messages.showResultOnce(record, record.result);
    if (record.resolvedLate) await deliver(record, record.result);
  }

  /** What cannot be delivered is due until it is, and its record stays so long. */
  async function deliver(record: CallRecord, result: Answer): Promise<void> {
    const mark = (undelivered: boolean) =>
      store.update(record.callId, (now) => (now.undelivered === undelivered ? undefined : { ...now, undelivered }));
    try {
      await messages.deliver(record, result);
    } catch (error) {
      if (!record.undelivered && (await mark(true))?.hasChanged) return; // the written record is due
      throw error;
    }
    if (record.undelivered) await mark(false);
  }

  async function checkOpen(record: CallRecord, signal: AbortSignal): Promise<number | undefined> {
    const now = clock.now();
    if (hasExpired(record, now)) return void (await expire(record));
    if (isWaitOver(record, now)) return void (await endWait(store, record.callId, audit));
    if (record.taken) {
      if ((await lostWatchers.check(record, signal)) === "decided") return;
    } else if (isExternal(record) && (await enqueueUnlessHeld(record, signal)) === "held") {
      return heldCheckAt(record, clock.now());
    }
    return nextCheckAt(record, clock.now());
  }

  /** dispatcher-1, dispatcher-4: the caller's router may have died before it delivered the call, and the watcher's router after it. */
  async function enqueueUnlessHeld(record: CallRecord, signal: AbortSignal): Promise<"held" | "offered"> {
    if (await queue.isQueued(record)) return "offered";
    if (await running.isHeld(record.callId, signal)) return "held";
    await queue.enqueue(record, "again");
    return "offered";
  }

  /** TOOL-5: after `expire_time` the call takes no result. */
  async function expire({ callId }: CallRecord): Promise<void> {
    const updated = await store.update(callId, (record) => {
      if (!isOpen(record) || !hasExpired(record, clock.now())) return undefined;
      const result = failure(`Tool call ${callId} expired before it was answered`);
      return { ...record, state: State.EXPIRED, result, resolvedLate: record.state === State.PENDING };
    });
    if (!updated?.hasChanged) return;
    const { record } = updated;
    store.announce(callId);
    audit({ kind: AuditKind.EXPIRED, ...auditedFacts(record) }, record.principal);
    if (isExternal(record)) await queue.remove(record);
  }

  return {
    /** Returns when the call is to be checked again; undefined when nothing is left to do. */
    async check(callId: string, signal: AbortSignal): Promise<number | undefined> {
      const record = await store.read(callId);
      if (record === undefined) return undefined;
      return isOpen(record) ? checkOpen(record, signal) : notify(record);
    },
  };
}

/** TOOL-4: the caller waits no longer. Returns the record. */
export async function endWait(store: CallStore, callId: string, audit: Audit): Promise<CallRecord | undefined> {
  const updated = await store.update(callId, (record) =>
    record.state === State.WAITING ? { ...record, state: State.PENDING } : undefined,
  );
  if (updated?.hasChanged) {
    store.announce(callId); // a caller that waits elsewhere makes it wait again
    audit({ kind: AuditKind.TIMED_OUT, ...auditedFacts(updated.record) }, updated.record.principal);
  }
  return updated?.record;
}
