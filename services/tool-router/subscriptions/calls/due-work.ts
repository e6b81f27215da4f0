import type { Msg } from "@nats-io/transport-node";
import type { Bus } from "#runtime/bus/bus.ts";
import { ensureWorkConsumer, nanosFromMs } from "#runtime/bus/work-queue/work-consumer.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { openPeriodic } from "#runtime/lifecycle/background.ts";
import type { DueWork } from "../../calls/due-work/due.ts";
import { deliveryInfoFrom } from "../queues/delivery-info.ts";
import { openPolls } from "../queues/polls.ts";

/*
 * Due work outlives the router that wrote the record: each write puts it into a header, and one durable consumer of the bucket
 * gives it to any router.
 *
 * due-work-1  Acknowledged work is done. When a router dies with work in its hands, another one gets it.
 * due-work-2  Work that is due later is put back until then: the server keeps the time.
 * due-work-3  The bucket keeps the last record of a call alone, so a new record replaces the due work of the former. Work is therefore
 *     fetched a moment later, when most calls are over; a router that writes urgent work fetches at once.
 * due-work-4  Work may be done twice, also at the same time: each step is a compare-and-set, or idempotent by the call's id.
 */

const DUE = "Toolbus-Due";
const stream = "KV_toolbus_calls";
const durable = "tool_router_due_work";
const ackWaitMs = 6_000;
const mostAtOnce = 256;
/** How long what is not urgent may lie. */
const pollMs = 500;

export function dueHeader(due: DueWork): Record<string, string> {
  return { [DUE]: due.kind === "check" ? String(Math.ceil(due.at)) : due.kind };
}

function dueWorkOf({ headers }: Msg): DueWork {
  const text = headers?.get(DUE) || "none";
  if (text === "notify" || text === "none") return { kind: text };
  return { kind: "check", at: Number(text) };
}

export interface DueWorkOptions {
  /** These calls have changed. */
  notify(callIds: string[]): void;
  /** Returns when the call is to be checked again; undefined when nothing is left to do. */
  check(callId: string): Promise<number | undefined>;
  onFault(fault: string): void;
}

export interface DueWorkQueue extends AsyncDisposable {
  /** Fetches at once, because urgent work was written. */
  fetchNow(): void;
}

const consumer = {
  ...{ stream, name: durable, ackWaitMs },
  // what is put back until its time counts as pending, too
  more: { deliver_policy: "all", headers_only: true, max_ack_pending: -1 },
} as const;

export function openDueWork(bus: Bus, options: DueWorkOptions): DueWorkQueue {
  const underWay = new Set<Promise<void>>();
  const arrived: Msg[] = [];
  const reply = ({ reply = "" }: Msg, text: string) => bus.connection.publish(reply, text);
  const putBack = (message: Msg, ms: number) =>
    reply(message, `-NAK {"delay":${nanosFromMs(Math.max(1, Math.ceil(ms)))}}`);

  async function check(message: Msg): Promise<void> {
    const callId = callIdOf(message);
    try {
      const again = await options.check(callId);
      if (again === undefined) reply(message, "+ACK");
      else putBack(message, again - Date.now());
    } catch (error) {
      const { deliveries } = deliveryInfoFrom(message.reply ?? "", stream);
      if (deliveries === 2) options.onFault(`what is due for call ${callId} waits: ${messageFromUnknown(error)}`);
      putBack(message, Math.min(100 * 2 ** Math.min(deliveries, 10), 10_000));
    }
  }

  function handle(batch: Msg[]): void {
    const changed: string[] = [];
    for (const message of batch) {
      const due = dueWorkOf(message);
      if (due.kind === "notify") changed.push(callIdOf(message));
      const leftMs = due.kind === "check" ? due.at - Date.now() : 0;
      if (due.kind !== "check") reply(message, "+ACK");
      else if (leftMs > 0)
        putBack(message, leftMs); // due-work-2
      else {
        const task = check(message).finally(() => underWay.delete(task));
        underWay.add(task);
      }
    }
    if (changed.length > 0) options.notify(changed);
  }

  const polls = openPolls(bus, consumer, (message) => {
    if (arrived.push(message) === 1) queueMicrotask(() => handle(arrived.splice(0))); // those that come together
  });
  let isReady = false;
  let told = "";
  const fetching = openPeriodic({
    everyMs: pollMs,
    async work(signal) {
      await bus.link.whenUp(signal);
      if (!isReady) await ensureWorkConsumer(bus, { ...consumer, signal });
      isReady = true;
      told = "";
      const atMost = mostAtOnce - underWay.size - arrived.length;
      if (atMost > 0 && (await polls.poll(atMost, signal))) fetching.now();
    },
    onError(error) {
      const fault = isReady ? "" : `due work of calls waits: ${messageFromUnknown(error)}`;
      if (fault !== told) options.onFault(fault);
      told = fault;
      isReady = false; // where a poll failed, the consumer may be gone
    },
  });
  fetching.now();
  return {
    fetchNow: () => fetching.now(),
    async [Symbol.asyncDispose]() {
      await fetching[Symbol.asyncDispose]();
      polls[Symbol.dispose]();
      await Promise.all(underWay);
    },
  };
}

function callIdOf({ subject }: Msg): string {
  return subject.slice(subject.lastIndexOf(".") + 1);
}
