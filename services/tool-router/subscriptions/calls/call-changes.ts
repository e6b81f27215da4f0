import type { Msg } from "@nats-io/transport-node";
import type { Bus } from "#runtime/bus/bus.ts";
import { PlainHeaders } from "#runtime/bus/nats-patches/plain-headers.ts";
import { type CallRecord, decodeCall, encodeCall } from "../../calls/records/call-record.ts";
import { watcherOf } from "../../calls/watchers/delivery-id.ts";
import type { RecentCall } from "./recent-calls.ts";

const CHANGED = "toolbus.call.changed";
const CALL = "Toolbus-Call";
const REVISION = "Toolbus-Revision";
const WATCHER = "Toolbus-Watcher";

/** A call has changed. The news carries what stands when that is small; `watcher` has taken it, or had before. */
export interface CallNews {
  readonly callId: string;
  readonly watcher: string;
  /** What stands; it has to be read where this is undefined. */
  readonly stands: { readonly revision: number; readonly record: () => CallRecord } | undefined;
}

/** News of calls, told to all routers at once. `onNews` of undefined says that some was lost. */
export async function openCallNews(bus: Bus, onNews: (news: CallNews | undefined) => void) {
  const { connection } = bus;
  const subscription = connection.subscribe(CHANGED, {
    callback(error, message) {
      if (error) onNews(undefined);
      else for (const news of newsFrom(message)) onNews(news);
    },
  });
  const endReturns = bus.link.onReturn(() => onNews(undefined));
  await connection.flush();
  return {
    /** These have changed: whoever waits for one of them reads it. */
    tellAgain(callIds: readonly string[]): void {
      connection.publish(CHANGED, callIds.join(" "));
    },
    tell(callId: string, stands: RecentCall | undefined): void {
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

function newsFrom({ headers: fields, data }: Msg): CallNews[] {
  if (fields === undefined) return new TextDecoder().decode(data).split(" ").map(unread);
  const revision = Number(fields.get(REVISION) || 0);
  const stands = revision > 0 ? { revision, record: () => decodeCall(data) } : undefined;
  return [{ callId: fields.get(CALL), watcher: fields.get(WATCHER), stands }];
}

function unread(callId: string): CallNews {
  return { callId, watcher: "", stands: undefined };
}
