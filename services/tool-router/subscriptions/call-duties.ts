import type { ConsumerMessages, JsMsg } from "@nats-io/jetstream";
import type { Bus } from "#runtime/bus/bus.ts";
import { isPassing } from "#runtime/bus/jetstream-errors.ts";
import { persist } from "#runtime/bus/link.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { createBackoff } from "#runtime/time/backoff.ts";
import { delay } from "#runtime/time/delay.ts";
import type { Duty } from "../duty.ts";

/*
 * What has to be done about calls outlives the router that knew it: each write of a record says so in a header, and one
 * durable consumer of the bucket hands it to whichever router is there.
 *
 * D1  What is acknowledged is done. A router that dies with it in its hands leaves it to the next.
 * D2  What has its time later is put back until then: the server is the clock.
 * D3  A record that is written again takes its earlier duty away, since the bucket keeps the last value alone.
 * D4  It may be done twice, at the same time too: whatever is done is a compare-and-set, or idempotent by the call's id.
 */

const DUTY = "Toolbus-Duty";
const stream = "KV_toolbus_calls";
const durable = "tool_router_duties";
const ackWaitMs = 15_000;
const mostAtOnce = 256;
const nanosecondsPerMillisecond = 1_000_000;

export function dutyHeader(duty: Duty): Record<string, string> {
  return { [DUTY]: duty.kind === "look" ? String(Math.ceil(duty.at)) : duty.kind };
}

function dutyOf(message: JsMsg): Duty {
  const text = message.headers?.get(DUTY) ?? "none";
  if (text === "tell" || text === "none") return { kind: text };
  return { kind: "look", at: Number(text) };
}

export interface DutyOptions {
  tell(callId: string): void;
  /** Gives when it is to be looked at again; undefined when nothing is left to do. */
  look(callId: string): Promise<number | undefined>;
  onFault(fault: string): void;
}

export async function openCallDuties(bus: Bus, options: DutyOptions): Promise<AsyncDisposable> {
  const stopping = new AbortController();
  const { signal } = stopping;
  const underWay = new Set<Promise<void>>();
  await persist(bus.link, () => ensureConsumer(bus), { what: `creating consumer ${durable}`, isPassing });

  async function look(message: JsMsg): Promise<void> {
    const callId = message.subject.slice(message.subject.lastIndexOf(".") + 1);
    try {
      const again = await options.look(callId);
      if (again === undefined) message.ack();
      else message.nak(Math.max(1, Math.ceil(again - Date.now())));
    } catch (error) {
      const attempt = message.info.deliveryCount;
      if (attempt === 2) options.onFault(`what is due for call ${callId} waits: ${messageFromUnknown(error)}`);
      message.nak(Math.min(100 * 2 ** Math.min(attempt, 10), 10_000));
    }
  }

  async function handle(message: JsMsg): Promise<void> {
    const duty = dutyOf(message);
    if (duty.kind === "tell") options.tell(message.subject.slice(message.subject.lastIndexOf(".") + 1));
    if (duty.kind !== "look") return message.ack();
    const leftMs = duty.at - Date.now();
    if (leftMs > 0) return message.nak(leftMs); // D2
    while (underWay.size >= mostAtOnce) await Promise.race(underWay);
    const task = look(message).finally(() => underWay.delete(task));
    underWay.add(task);
  }

  const run = async () => {
    const backoff = createBackoff({ initialMs: 20, maxMs: 1_000 });
    while (!signal.aborted) {
      try {
        for await (const message of consume(bus, signal)) {
          await handle(message);
          backoff.reset();
        }
      } catch (error) {
        if (!signal.aborted) options.onFault(`what is due for calls is not heard: ${messageFromUnknown(error)}`);
      }
      await delay(backoff.next(), signal).catch(() => {}); // aborted: the loop's condition sees it
    }
    await Promise.all(underWay);
  };
  const running = run();
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await running;
    },
  };
}

async function ensureConsumer(bus: Bus) {
  await bus.manager.consumers.add(stream, {
    durable_name: durable,
    ack_policy: "explicit",
    ack_wait: ackWaitMs * nanosecondsPerMillisecond,
    deliver_policy: "all",
    headers_only: true,
    max_ack_pending: -1, // what is put back until its time counts as well
  });
}

async function* consume(bus: Bus, signal: AbortSignal): AsyncGenerator<JsMsg> {
  const open = async () => {
    await ensureConsumer(bus); // a server that lost its store comes back without it
    const consumer = await bus.jetstream.consumers.get(stream, durable);
    return consumer.consume({ max_messages: 64, expires: 10_000, idle_heartbeat: 1_000 });
  };
  const messages: ConsumerMessages = await persist(bus.link, open, { signal, what: `consuming ${durable}`, isPassing });
  const { down } = bus.link;
  const stop = () => messages.stop();
  for (const end of [signal, down]) end.addEventListener("abort", stop, { once: true });
  if (signal.aborted || down.aborted) stop();
  try {
    yield* messages;
  } finally {
    for (const end of [signal, down]) end.removeEventListener("abort", stop);
    messages.stop();
  }
}
