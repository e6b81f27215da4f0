import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import type { CancelToolCallRequest } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { type Asker, requireOwner } from "#runtime/failure/session-owner.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { Audit } from "../../catalogue/audit/audit.ts";
import { type Answer, canceled, failure } from "../answers/answer.ts";
import { auditedFacts, type CallRecord, callRecord } from "../records/call-record.ts";
import type { RunningCalls } from "../records/running.ts";
import { cancelersOf, isExternal, isOpen, isTombstone } from "../records/states.ts";
import type { CallStore } from "../records/store.ts";
import type { CallQueue } from "../watchers/watching.ts";

/*
 * C1  A call that has not begun gets a record that says so: whoever is to begin it creates its record first, finds this one,
 *     and gives its answer. So a process that was frozen cannot begin it later, on any router.
 * C2  What is not recorded, since it may be repeated, is refused by the routers that have heard of the cancellation.
 * C3  A call that waits for somebody outside is resolved by compare-and-set; its watcher is told by the news.
 * C4  A call that a router executes is ended there, and so at its provider; what came of it is told as always.
 * C5  Whose a call is, is not known before it begins. So what is canceled before holds for calls of who did it (of anybody, when
 *     it was one of the suite's own services), and is nothing to the calls of others.
 */

export interface Cancellation {
  /** Gives whether the execution may have begun before. */
  cancel(request: CancelToolCallRequest, asker: Asker): Promise<boolean>;
}

export interface CancellationParts {
  store: CallStore;
  running: Pick<RunningCalls, "cancel">;
  queue: CallQueue;
  audit: Audit;
  clock: Clock;
}

export function createCancellation({ store, running, queue, audit, clock }: CancellationParts): Cancellation {
  async function createTombstone(callId: string, result: Answer, by: string): Promise<boolean> {
    const createdAt = timestampFromMs(clock.now());
    const facts = { callId, principal: by, canceledBy: [by] };
    const tombstone = { ...facts, state: State.CANCELED, result, createTime: createdAt };
    return store.create(callRecord(tombstone));
  }

  /** Gives what stands of it, and whether this is what ended it. */
  async function end(callId: string, why: string, asker: Asker) {
    const updated = await store.update(callId, (record) => {
      if (isTombstone(record)) return joined(record, asker ?? "");
      requireOwner(record, asker);
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

  return {
    async cancel({ callId, reason }, asker) {
      const why = reason === "" ? "the call was canceled" : `the call was canceled: ${reason}`;
      const isTombstoneCreated = await createTombstone(callId, failure(why), asker ?? ""); // C1
      const ended = isTombstoneCreated ? undefined : await end(callId, why, asker); // C3
      const record = ended && !isTombstone(ended.record) ? ended.record : undefined;
      const mayRun = record === undefined || record.state === State.STARTED;
      const isRunning = mayRun && (await running.cancel(callId, asker)); // C2, C4
      if (mayRun || ended?.hasChanged) {
        audit({ kind: AuditKind.CANCELED, callId, message: why, ...(record && auditedFacts(record)) });
      }
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
