import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import type { CancelToolCallRequest } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import type { Quota } from "#runtime/bus/quota/quota.ts";
import type { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { requireOwner } from "#runtime/failure/session-owner.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import { type Answer, canceled, failure } from "../answers/answer.ts";
import { auditedFacts, type CallRecord, callRecord } from "../records/record/call-record.ts";
import { cancelersOf, isExternal, isOpen, isTombstone } from "../records/record/states.ts";
import type { RunningCalls } from "../records/running.ts";
import type { RecordingParts } from "../records/store.ts";
import type { CallQueue } from "../watchers/ports.ts";

/*
 * cancellation-1  A call that has not begun gets a record that says that it is canceled, a tombstone. A router creates a call's record
 *     before it begins the call, so it finds the tombstone and answers with it, even if it was frozen meanwhile.
 * cancellation-2  A call that is not recorded, because it may be repeated, is refused by the routers that have heard of the cancellation.
 * cancellation-3  A call that waits for a person or a watcher is resolved by compare-and-set; the change withdraws it from its watcher.
 * cancellation-4  A call that a router executes is aborted there, and so at its provider. Its result is recorded as always. If its router
 *     was lost, so that nobody would record a result, it is resolved here (records-3 of `records.ts`).
 * cancellation-5  Before a call begins, nobody knows whose it is. So a tombstone holds only for calls of the principal that canceled (for
 *     everybody's calls if one of the suite's own services did), and others' calls ignore it.
 * cancellation-6  What is there, recorded or in flight, is canceled also where no tombstone can be made: the store is full, or it is short
 *     of room, and the principal has its share of the records. The suite's own services cancel on its behalf only calls of its runs and
 *     requests, which have shares of their own.
 */

/** How long routers may take to say whether one of them executes a call. */
const HOLDER_MS = 5_000;

export type Cancellation = ReturnType<typeof createCancellation>;

export interface CancellationParts extends RecordingParts {
  running: Pick<RunningCalls, "cancel" | "isHeld">;
  waiters: KeyedListeners;
  queue: CallQueue;
  quota?: Pick<Quota, "requireRoom">;
}

export function createCancellation({ store, running, waiters, queue, quota, audit, clock }: CancellationParts) {
  async function createTombstone(callId: string, result: Answer, by: string): Promise<boolean> {
    const facts = { callId, principal: by, canceledBy: [by], createTime: timestampFromMs(clock.now()) };
    return store.create(callRecord({ ...facts, state: State.CANCELED, result }));
  }

  /** Returns the record, and whether this call ended it. */
  async function end(callId: string, why: string, caller: Caller) {
    const updated = await store.update(callId, (record) => {
      if (isTombstone(record)) return joined(record, caller.principal ?? "");
      requireOwner(record, caller, `call ${callId}`);
      if (!isOpen(record)) return undefined;
      const result = record.taken ? canceled(record.effect) : failure(why);
      return { ...record, state: State.CANCELED, result };
    });
    if (updated?.hasChanged) {
      store.announce(callId);
      if (isOpen(updated.before) && isExternal(updated.record)) await queue.remove(updated.record);
    }
    return updated;
  }

  /** cancellation-4 */
  async function resolveLost({ callId }: CallRecord): Promise<void> {
    using limit = timeoutSignal(HOLDER_MS);
    using ending = openEnding(limit);
    const hasEnded = async () => (await store.read(callId))?.state !== State.STARTED || undefined;
    const ended = waiters.until(callId, hasEnded, ending.signal); // no router answers for it any more: that silence takes time
    const isNotLost = await Promise.race([ended, running.isHeld(callId, ending.signal)]).catch(() => true);
    ending.end();
    if (isNotLost) return; // or undecided: whoever asks for the call decides
    const updated = await store.update(callId, (record) =>
      record.state === State.STARTED
        ? { ...record, state: State.RESOLVED, result: canceled(record.effect) }
        : undefined,
    );
    if (updated?.hasChanged) store.announce(callId);
  }

  return {
    /** Gives whether the execution may have begun before. */
    async cancel({ callId, reason }: CancelToolCallRequest, caller: Caller): Promise<boolean> {
      const why = reason === "" ? "the call was canceled" : `the call was canceled: ${reason}`;
      const { principal = "", service } = caller;
      let [isTombstoneCreated, wasRunning] = [false, false];
      try {
        if (service === undefined) quota?.requireRoom(principal, why.length);
        isTombstoneCreated = await createTombstone(callId, failure(why), principal); // cancellation-1
      } catch (error) {
        const isRecorded = (await store.read(callId)) !== undefined;
        wasRunning = !isRecorded && (await running.cancel(callId, caller));
        if (!isRecorded && !wasRunning) throw error; // cancellation-6
      }
      const ended = isTombstoneCreated ? undefined : await end(callId, why, caller); // cancellation-3
      const record = ended && !isTombstone(ended.record) ? ended.record : undefined;
      const mayRun = record === undefined || record.state === State.STARTED;
      const isRunning = wasRunning || (mayRun && (await running.cancel(callId, caller))); // cancellation-2, cancellation-4
      if (record?.state === State.STARTED) await resolveLost(record); // a router that only follows it says that it runs, too
      const audited = { kind: AuditKind.CANCELED, callId, message: why, ...(record && auditedFacts(record)) };
      if (mayRun || ended?.hasChanged) audit(audited, caller.principal);
      if (mayRun) return isRunning || record !== undefined;
      return record.state === State.CANCELED ? record.taken : true;
    },
  };
}

function joined(tombstone: CallRecord, by: string): CallRecord | undefined {
  const standing = cancelersOf(tombstone);
  if (standing.includes(by) || standing.includes("")) return undefined;
  return { ...tombstone, canceledBy: [...standing, by], result: failure("the call was canceled") };
}
