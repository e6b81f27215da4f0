import type { Msg } from "@nats-io/transport-node";
import type { Bus } from "#runtime/bus/bus.ts";
import { PlainHeaders } from "#runtime/bus/nats-patches/plain-headers.ts";
import { type CallRecord, decodeCall, encodeCall } from "../../calls/records/call-record.ts";
import { watcherOf } from "../../calls/watchers/delivery-id.ts";
import type { CachedCall } from "./cached-calls.ts";

const CHANGED = "toolbus.call.changed";
const CALL = "Toolbus-Call";
const REVISION = "Toolbus-Revision";
const WATCHER = "Toolbus-Watcher";

/** A call has changed. The news carries what stands when that is small; `watcher` has taken it, or had before. */
export interface CallChange {
  readonly callId: string;
  readonly watcher: string;
  /** What stands; it has to be read where this is undefined. */
  readonly current: { readonly revision: number; readonly record: () => CallRecord } | undefined;
}

/** News of calls, told to all routers at once. `onNews` of undefined says that some was lost. */
export async function openCallChanges(bus: Bus, onChange: (news: CallChange | undefined) => void) {
  const { connection } = bus;
  const subscription = connection.subscribe(CHANGED, {
    callback(error, message) {
      if (error) onChange(undefined);
      else for (const news of changesFrom(message)) onChange(news);
    },
  });
  const endReturns = bus.link.onReturn(() => onChange(undefined));
  await connection.flush();
  return {
    /** These have changed: whoever waits for one of them reads it. */
    announceAgain(callIds: readonly string[]): void {
      connection.publish(CHANGED, callIds.join(" "));
    },
    announce(callId: string, stands: CachedCall | undefined): void {
      const fields = new PlainHeaders();
      fields.set(CALL, callId);
      if (stands) fields.set(REVISION, String(stands.revision));
      if (stands?.record.taken) fields.set(WATCHER, watcherOf(stands.record.deliveryId));
      const payload = stands ? encodeCall(stands.record) : undefined;
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
  const stands = revision > 0 ? { revision, record: () => decodeCall(data) } : undefined;
  return [{ callId: fields.get(CALL), watcher: fields.get(WATCHER), current: stands }];
}

function changeWithoutRecord(callId: string): CallChange {
  return { callId, watcher: "", current: undefined };
}
