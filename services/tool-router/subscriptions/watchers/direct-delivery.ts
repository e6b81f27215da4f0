import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Msg, Subscription } from "@nats-io/transport-node";
import type { Bus } from "#runtime/bus/bus.ts";
import { openInbox } from "#runtime/bus/credentials/inbox.ts";
import { listen } from "#runtime/bus/link/listen.ts";
import { readRecord } from "#runtime/bus/streams/record.ts";
import { FIRST_CHECK_MS } from "../../calls/due-work/due.ts";
import { type CallRecord, decodeCall, encodeCall } from "../../calls/records/record/call-record.ts";
import { tokenFrom } from "./subject-token.ts";

/*
 * Sends a call directly from the router that recorded it to one that has a watcher of its tool. By the work queue alone it took as long,
 * and a fifth more of the processors (bench `router`: `external_cpu_ms` 1.39 and 1.68).
 *
 * direct-delivery-1  Each tool has a subject, with a queue group of the routers that have watchers of it. The server gives a call to one of
 *     them, or answers that there is none.
 * direct-delivery-2  After the time at which the due work begins to ask who holds the call, nothing is delivered, accepted or refused. So
 *     if no router says then that it holds the call, none does, and the call may be enqueued.
 * direct-delivery-3  No answer means that the call was accepted. A router that cannot accept it answers, and the server does when there is
 *     no such router. If that answer is lost, the due work finds the call.
 */

const QUEUE = "watchers";
/** A call that is sent so shortly before that time would come too late. */
const MARGIN_MS = 250;
const REVISION_BYTES = 8;

export interface DirectDeliveryOptions {
  /** Returns whether a watcher here accepts the call. A revision of 0 is unknown. */
  onDelivered(record: CallRecord, revision: number): boolean;
  /** No router accepted a call that was sent from here. */
  onRefused(callId: string): void;
}

export function openDirectDelivery(bus: Bus, { onDelivered, onRefused }: DirectDeliveryOptions) {
  const { connection } = bus;
  const subscriptions = new Map<string, Subscription>();
  const refusals = `${openInbox(connection)}.`;
  const refused = listen(bus, `${refusals}*`, ({ subject }) => onRefused(subject.slice(refusals.length)));

  function receive(message: Msg): void {
    const { data } = message;
    if (data.length < REVISION_BYTES) return void message.respond();
    const revision = new DataView(data.buffer, data.byteOffset).getFloat64(0);
    const place = { subject: message.subject, sequence: 0 };
    const record = readRecord(bus, place, () => decodeCall(data.subarray(REVISION_BYTES)));
    if (record === undefined || !canBeDelivered(record) || !onDelivered(record, revision)) message.respond();
  }

  function close(tool: string): void {
    const closed = subscriptions.get(tool);
    subscriptions.delete(tool);
    void closed?.drain().catch(() => {}); // the connection is closing, and the subscription with it
  }

  return {
    /** Returns whether the call was sent. */
    deliver(record: CallRecord, revision: number): boolean {
      if (leftMs(record) < MARGIN_MS || !bus.link.isUp) return false;
      connection.publish(subjectOf(record.tool), encoded(record, revision), { reply: refusals + record.callId });
      return true;
    },
    /** Calls of the tool may come here. */
    open(tool: string): void {
      if (subscriptions.has(tool)) return;
      subscriptions.set(tool, listen(bus, subjectOf(tool), receive, { queue: QUEUE }));
    },
    close,
    [Symbol.dispose]() {
      for (const tool of [...subscriptions.keys()]) close(tool);
      refused.unsubscribe();
    },
  };
}

function subjectOf(tool: string): string {
  return `toolbus.call.hand.${tokenFrom(tool)}`;
}

/** direct-delivery-2 */
export function canBeDelivered(record: CallRecord): boolean {
  return leftMs(record) > 0;
}

function leftMs({ createTime: createdAt }: CallRecord): number {
  return createdAt === undefined ? 0 : timestampMs(createdAt) + FIRST_CHECK_MS - Date.now();
}

function encoded(record: CallRecord, revision: number): Uint8Array {
  const body = encodeCall(record);
  const bytes = new Uint8Array(REVISION_BYTES + body.length);
  new DataView(bytes.buffer).setFloat64(0, revision);
  bytes.set(body, REVISION_BYTES);
  return bytes;
}
