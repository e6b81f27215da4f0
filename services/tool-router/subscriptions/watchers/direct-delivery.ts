import { timestampMs } from "@bufbuild/protobuf/wkt";
import { createInbox, type Msg, type Subscription } from "@nats-io/transport-node";
import type { Bus } from "#runtime/bus/bus.ts";
import { readRecord } from "#runtime/bus/record.ts";
import { FIRST_CHECK_MS } from "../../calls/due-work/due.ts";
import { type CallRecord, decodeCall, encodeCall } from "../../calls/records/call-record.ts";
import { tokenFrom } from "./subject-token.ts";

/*
 * Calls that go straight from the router that recorded them to one that holds a watcher of their tool.
 *
 * G1  A subject a tool, with a queue group of the routers that hold watchers of it: the server gives a call to one of them,
 *     or says that there is none.
 * G2  Nothing is handed, taken or refused later than the time at which the duty of the record begins to ask who has it.
 *     So what nobody admits to have by then is in nobody's hands, and may be offered.
 * G3  Silence is consent: who takes a call answers it, and nothing else. Who cannot take it says so, and so does the server when
 *     nobody is there. When that word is lost, the duty finds out.
 */

const QUEUE = "watchers";
/** A call that is handed so shortly before its time is over would come too late. */
const MARGIN_MS = 250;
const REVISION_BYTES = 8;

export interface DirectDelivery extends Disposable {
  /** Whether it could be sent. */
  deliver(record: CallRecord, revision: number): boolean;
  /** Calls of the tool may come here. */
  open(tool: string): void;
  close(tool: string): void;
}

export interface DirectDeliveryOptions {
  /** Gives whether a watcher here has it. A revision of 0 is not known. */
  onDelivered(record: CallRecord, revision: number): boolean;
  /** Nobody has taken a call that was handed from here. */
  onRefused(callId: string): void;
}

export function openDirectDelivery(
  bus: Bus,
  { onDelivered: onHanded, onRefused }: DirectDeliveryOptions,
): DirectDelivery {
  const { connection } = bus;
  const subscriptions = new Map<string, Subscription>();
  const refusals = `${createInbox()}.`;
  const refused = connection.subscribe(`${refusals}*`, {
    callback: (error, { subject }) => {
      if (error === null) onRefused(subject.slice(refusals.length));
    },
  });

  function receive(message: Msg): void {
    const { data } = message;
    if (data.length < REVISION_BYTES) return void message.respond();
    const revision = new DataView(data.buffer, data.byteOffset).getFloat64(0);
    const place = { subject: message.subject, sequence: 0 };
    const record = readRecord(bus, place, () => decodeCall(data.subarray(REVISION_BYTES)));
    if (record === undefined || !canBeDelivered(record) || !onHanded(record, revision)) message.respond();
  }

  function close(tool: string): void {
    const closed = subscriptions.get(tool);
    subscriptions.delete(tool);
    void closed?.drain().catch(() => {}); // the connection is closing, and the subscription with it
  }

  return {
    deliver(record, revision) {
      if (leftMs(record) < MARGIN_MS || !bus.link.isUp) return false;
      connection.publish(subjectOf(record.tool), encoded(record, revision), { reply: refusals + record.callId });
      return true;
    },
    open(tool) {
      if (subscriptions.has(tool)) return;
      const callback = (error: Error | null, message: Msg) => {
        if (error === null) receive(message);
      };
      subscriptions.set(tool, connection.subscribe(subjectOf(tool), { queue: QUEUE, callback }));
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

/** G2 */
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
