import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type ToolCallRecord, ToolCallRecordSchema } from "#gen/toolbus/router/v1/tool_calls_pb.ts";
import { appendFenced } from "#runtime/bus/append.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { isPassing } from "#runtime/bus/jetstream-errors.ts";
import { persist } from "#runtime/bus/link.ts";
import type { Offer, Offers } from "../watch/watching.ts";
import { deliveryInfoFrom } from "./delivery-info.ts";
import { openPulls } from "./pulls.ts";
import { tokenFrom } from "./subject-token.ts";

/*
 * Calls wait for a watcher in a work queue, a subject a call, a consumer a tool. The server hands each to one router at a
 * time, and to another one when that one says so, falls silent or dies.
 *
 * Q1  A call stands there once: an offer is appended only where none stands.
 * Q2  As much is asked for as this router's watchers can take at once; nothing is fetched ahead.
 * Q3  What is in this router's hands is kept by saying so each second; who said nothing for three has it no longer, and
 *     then says nothing more about it.
 */

const KEEP_MS = 1_000;
const ACK_WAIT_MS = 3_000;
const OLD_MS = 1_000;
const stream = "TOOLBUS_OFFERS";

export interface OffersOptions {
  onOffer(offer: Offer): void;
  onFault(fault: string): void;
}

export function openOffers(bus: Bus, { onOffer, onFault }: OffersOptions): Offers & Disposable {
  const held = new Set<Held>();
  const keeping = setInterval(() => {
    for (const one of held) one.keep();
  }, KEEP_MS);

  const pulls = openPulls(bus, {
    stream,
    ackWaitMs: ACK_WAIT_MS,
    onFault,
    onMessage(message) {
      const { reply = "", data } = message;
      const one = new Held((word) => bus.connection.publish(reply, word), held);
      const settle = () => one.end("+ACK");
      onOffer({
        record: fromBinary(ToolCallRecordSchema, data),
        isOld: isOld(reply),
        settle,
        handOn: () => one.end("-NAK"),
      });
    },
  });

  return {
    async offer(record) {
      await appendFenced(bus, {
        subject: subjectOf(record),
        expectedLastSequence: 0, // Q1: a conflict says that it stands
        payload: toBinary(ToolCallRecordSchema, record),
      });
    },
    async withdraw(record) {
      const purge = () => bus.manager.streams.purge(stream, { filter: subjectOf(record) });
      await persist(bus.link, purge, { what: `withdrawing call ${record.callId}`, timeoutMs: 30_000, isPassing });
    },
    demand: (tool, count) => pulls.demand(queueOf(tool), count),
    leave: (tool) => pulls.leave(queueOf(tool)),
    [Symbol.dispose]() {
      clearInterval(keeping);
      pulls[Symbol.dispose]();
      for (const one of held) one.end("-NAK");
    },
  };
}

/** A message of the queue that this router has. */
class Held {
  readonly #say: (text: string) => void;
  readonly #all: Set<Held>;
  #saidAt = performance.now();

  constructor(say: (text: string) => void, all: Set<Held>) {
    this.#say = say;
    this.#all = all;
    all.add(this);
  }

  keep(): void {
    if (this.#isMine()) this.#say("+WPI");
    else this.#all.delete(this);
    this.#saidAt = performance.now();
  }

  end(word: "+ACK" | "-NAK"): void {
    if (this.#all.delete(this) && this.#isMine()) this.#say(word);
  }

  #isMine(): boolean {
    return performance.now() - this.#saidAt < ACK_WAIT_MS; // Q3
  }
}

function isOld(reply: string): boolean {
  const { deliveries, storedAtMs } = deliveryInfoFrom(reply, stream);
  return deliveries > 1 || Date.now() - storedAtMs > OLD_MS;
}

function queueOf(tool: string) {
  const token = tokenFrom(tool);
  return { consumer: `tool_${token}`, filter: `toolbus.offer.${token}.*`, description: tool.slice(0, 1_024) };
}

function subjectOf({ tool, callId }: ToolCallRecord): string {
  return `toolbus.offer.${tokenFrom(tool)}.${callId}`;
}
