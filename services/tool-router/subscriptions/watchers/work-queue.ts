import type { Msg } from "@nats-io/transport-node";
import type { Bus } from "#runtime/bus/bus.ts";
import { retryOnBus } from "#runtime/bus/link/link.ts";
import { appendFenced, lastOf } from "#runtime/bus/streams/append/append.ts";
import { readRecord } from "#runtime/bus/streams/record.ts";
import { type CallRecord, decodeCall, encodeCall } from "../../calls/records/record/call-record.ts";
import type { CallQueue, QueuedCall } from "../../calls/watchers/ports.ts";
import { type DeliveryInfo, deliveryInfoFrom } from "../queues/delivery-info.ts";
import { openPulls } from "../queues/pulls.ts";
import { tokenFrom } from "./subject-token.ts";

/*
 * Calls that wait for a watcher are messages of a work queue: a subject a call, a consumer a tool of which one waits (pulls-4). The
 * server gives each to one router at a time, and to another one if that router releases it, falls silent or dies.
 *
 * watcher-queue-1  A call is queued once: it is appended only if its subject is empty.
 * watcher-queue-2  A router asks for as many calls as its watchers have room for, but only for one while none is known to wait, to keep
 *     room for calls that are delivered directly. Queued calls come first: while some wait, no direct delivery is accepted.
 * watcher-queue-3  A router renews each second what it holds. If it has renewed nothing for three seconds it has lost the call, and sends
 *     no acknowledgement for it.
 * watcher-queue-4  A header marks a call that another watcher may have held: its receiver reads the record first.
 */

const RENEW_MS = 1_000;
const ACK_WAIT_MS = 3_000;
const OLD_MS = 1_000;
/** How long this router believes that calls wait in a queue: others may take them. */
const WAITING_MS = 500;
const AGAIN = "Toolbus-Again";
const stream = "TOOLBUS_OFFERS";

export interface WorkQueueOptions {
  onQueued(queued: QueuedCall): void;
  onFault(fault: string): void;
}

export interface WorkQueue extends Omit<CallQueue, "deliver">, Disposable {
  /** watcher-queue-2 */
  areWaiting(tool: string): boolean;
}

export function openWorkQueue(bus: Bus, { onQueued, onFault }: WorkQueueOptions): WorkQueue {
  const held = new Set<HeldMessage>();
  /** Until when this router believes that calls wait in the queue, by tool. */
  const waiting = new Map<string, number>();
  const areWaiting = (tool: string) => (waiting.get(tool) ?? 0) > performance.now();
  const renewing = setInterval(() => {
    for (const one of held) one.renew();
  }, RENEW_MS);

  function receive({ subject, reply = "", data, headers }: Msg): void {
    const info = deliveryInfoFrom(reply, stream);
    const record = readRecord(bus, { subject, sequence: 0 }, () => decodeCall(data));
    if (record === undefined) return void bus.connection.publish(reply, "+TERM"); // no router can offer it
    if (info.pending > 0) waiting.set(record.tool, performance.now() + WAITING_MS);
    else waiting.delete(record.tool);
    const one = new HeldMessage((word) => bus.connection.publish(reply, word), held);
    onQueued({
      record,
      isOld: isOld(info) || headers?.has(AGAIN) === true,
      ack: () => one.end("+ACK"),
      release: () => one.end("-NAK"),
    });
  }

  const pulls = openPulls(bus, { stream, ackWaitMs: ACK_WAIT_MS, onFault, onMessage: receive });

  return {
    areWaiting,
    async enqueue(record, standing) {
      await appendFenced(bus, {
        subject: subjectOf(record),
        expectedLastSequence: 0, // watcher-queue-1: on a conflict it is queued already
        payload: encodeCall(record),
        ...(standing === "again" && { headers: { [AGAIN]: "1" } }), // watcher-queue-4
      });
    },
    isQueued: async (record) => (await lastOf(bus, subjectOf(record))) !== null,
    async remove(record) {
      const purge = () => bus.manager.streams.purge(stream, { filter: subjectOf(record) });
      await retryOnBus(bus.link, purge, { what: `withdrawing call ${record.callId}`, timeoutMs: 30_000 });
    },
    demand: (tool, count) => pulls.demand(nameOf(tool), areWaiting(tool) ? count : Math.min(count, 1)),
    stop: (tool) => pulls.leave(nameOf(tool)),
    [Symbol.dispose]() {
      clearInterval(renewing);
      pulls[Symbol.dispose]();
      for (const one of held) one.end("-NAK");
    },
  };
}

/** A message of the queue that this router holds. */
class HeldMessage {
  readonly #reply: (text: string) => void;
  readonly #all: Set<HeldMessage>;
  #renewedAt = performance.now();

  constructor(say: (text: string) => void, all: Set<HeldMessage>) {
    this.#reply = say;
    this.#all = all;
    all.add(this);
  }

  renew(): void {
    if (this.#isMine()) this.#reply("+WPI");
    else this.#all.delete(this);
    this.#renewedAt = performance.now();
  }

  end(word: "+ACK" | "-NAK"): void {
    if (this.#all.delete(this) && this.#isMine()) this.#reply(word);
  }

  #isMine(): boolean {
    return performance.now() - this.#renewedAt < ACK_WAIT_MS; // watcher-queue-3
  }
}

function isOld({ deliveries, storedAtMs }: DeliveryInfo): boolean {
  return deliveries > 1 || Date.now() - storedAtMs > OLD_MS;
}

function nameOf(tool: string) {
  const token = tokenFrom(tool);
  return { consumer: `tool_${token}`, filter: `toolbus.offer.${token}.*`, description: tool.slice(0, 1_024) };
}

function subjectOf({ tool, callId }: CallRecord): string {
  return `toolbus.offer.${tokenFrom(tool)}.${callId}`;
}
