import type { Msg } from "@nats-io/transport-node";
import type { Bus } from "#runtime/bus/bus.ts";
import { PlainHeaders } from "#runtime/bus/nats-patches/plain-headers.ts";
import { type CallRecord, decodeCall, encodeCall } from "../../../calls/records/record/call-record.ts";
import { watcherOf } from "../../../calls/watchers/delivery-id.ts";
import type { CachedCall } from "./cached-calls.ts";

const CHANGED = "toolbus.call.changed";
const CALL = "Toolbus-Call";
const REVISION = "Toolbus-Revision";
const WATCHER = "Toolbus-Watcher";

/** A call's record has changed. `watcher` is the token of the watcher that has acknowledged the call, or had before. */
export interface CallChange {
  readonly callId: string;
  readonly watcher: string;
  /** The record, if it is small; undefined when it has to be read. */
  readonly current: { readonly revision: number; readonly record: () => CallRecord } | undefined;
}

/** Sends changes of calls to all routers, and receives theirs. Calls `onChange` with undefined when changes may be lost. */
export async function openCallChanges(bus: Bus, onChange: (change: CallChange | undefined) => void) {
  const { connection } = bus;
  const subscription = connection.subscribe(CHANGED, {
    callback(error, message) {
      if (error) onChange(undefined);
      else for (const change of changesFrom(message)) onChange(change);
    },
  });
  const endReturns = bus.link.onReturn(() => onChange(undefined));
  await connection.flush();
  return {
    /** Announces changes without their records. */
    announceAgain(callIds: readonly string[]): void {
      connection.publish(CHANGED, callIds.join(" "));
    },
    announce(callId: string, cached: CachedCall | undefined): void {
      const fields = new PlainHeaders();
      fields.set(CALL, callId);
      if (cached) fields.set(REVISION, String(cached.revision));
      if (cached?.record.taken) fields.set(WATCHER, watcherOf(cached.record.deliveryId));
      const payload = cached ? encodeCall(cached.record) : undefined;
      connection.publish(CHANGED, payload, { headers: fields });
    },
    [Symbol.dispose]() {
      endReturns();
      subscription.unsubscribe();
    },
  };
}

function changesFrom({ headers: fields, data }: Msg): CallChange[] {
  if (fields === undefined) return new TextDecoder().decode(data).split(" ").map(changeWithoutRecord);
  const revision = Number(fields.get(REVISION) || 0);
  const cached = revision > 0 ? { revision, record: () => decodeCall(data) } : undefined;
  return [{ callId: fields.get(CALL), watcher: fields.get(WATCHER), current: cached }];
}

function changeWithoutRecord(callId: string): CallChange {
  return { callId, watcher: "", current: undefined };
}
