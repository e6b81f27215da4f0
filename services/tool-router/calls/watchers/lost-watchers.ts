import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { outcomeUnknown } from "../answers/answer.ts";
import { auditedFacts, type CallRecord } from "../records/record/call-record.ts";
import { isOpen } from "../records/record/states.ts";
import type { RecordingParts } from "../records/store.ts";
import { watcherOf } from "./delivery-id.ts";
import type { CallQueue, Presence } from "./ports.ts";

/** How long a watcher whose stream has ended may take to open another one. */
const RETURN_MS = 2_000;

export interface LostWatcherParts extends RecordingParts {
  queue: CallQueue;
  presence: Presence;
}

export type LostWatchers = ReturnType<typeof createLostWatchers>;

export function createLostWatchers({ store, queue, presence, audit, clock }: LostWatcherParts) {
  async function decide(taken: CallRecord): Promise<void> {
    const updated = await store.update(taken.callId, (record) => {
      const isSame = isOpen(record) && record.taken && record.deliveryId === taken.deliveryId;
      return isSame ? afterLossOf(record) : undefined;
    });
    if (!updated?.hasChanged) return; // answered, or taken back, meanwhile
    const { record } = updated;
    store.announce(record.callId);
    if (isOpen(record)) await queue.enqueue(record, "again");
    const message = isOpen(record) ? "the call goes to another watcher" : "its outcome is unknown";
    audit({ kind: AuditKind.WATCHER_LOST, ...auditedFacts(record), message }, record.principal);
  }

  return {
    /**
     * Checks whether the watcher that acknowledged the call is connected, and gives it time to come back. If it does not, a call
     * that may be repeated goes to another watcher; any other ends with an unknown outcome (TOOL-6, LOOP-14).
     */
    async check(taken: CallRecord, signal: AbortSignal): Promise<"watcher lives" | "decided"> {
      const watcher = watcherOf(taken.deliveryId);
      if (await presence.isWatching(watcher, signal)) return "watcher lives";
      await clock.delay(RETURN_MS, signal);
      if (await presence.isWatching(watcher, signal)) return "watcher lives";
      await decide(taken);
      return "decided";
    },
  };
}

function afterLossOf(record: CallRecord): CallRecord {
  const mayRepeat = record.effect === Effect.PURE || record.effect === Effect.IDEMPOTENT;
  if (mayRepeat) return { ...record, taken: false, deliveryId: "", watcherPrincipal: "" };
  const result = outcomeUnknown("the service that had taken the call was lost during it");
  return { ...record, state: State.RESOLVED, result, resolvedLate: record.state === State.PENDING };
}
