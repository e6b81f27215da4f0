import type { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import type { CallRecord } from "../../calls/records/record/call-record.ts";
import type { CallStore } from "../../calls/records/store.ts";

/** The recorded calls in memory, with the same promises as the bucket: each update is one step. */
export function createMemoryCalls(waiters: KeyedListeners, heldElsewhere: ReadonlySet<string> = new Set()) {
  const records = new Map<string, CallRecord>();
  const store: CallStore = {
    read: async (callId) => records.get(callId),
    readCached: async (callId) => records.get(callId),
    async create(record) {
      if (records.has(record.callId)) return false;
      records.set(record.callId, record);
      return true;
    },
    async update(callId, decide) {
      const before = records.get(callId);
      if (before === undefined) return undefined;
      const after = decide(before);
      if (after !== undefined) records.set(callId, after);
      return { before, record: after ?? before, hasChanged: after !== undefined };
    },
    list: async () => records,
    announce: (callId) => waiters.notify(callId),
  };
  const running = {
    isHeld: async (callId: string) => heldElsewhere.has(callId),
    follow: () => ({ [Symbol.dispose]() {} }),
  };
  const tasks = { async add() {} };
  return { records, store, running, tasks };
}
