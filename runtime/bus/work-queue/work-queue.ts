/**
 * Work that waits in a stream, shared by all processes that ask for it under one consumer's name.
 *
 * work-queue-1  As much is fetched as can begin at once: what waits in a process's memory runs into its time.
 * work-queue-2  While a message is worked on, the server is told so several times within the time after which it would give it to
 *     another process. That one is free to begin as soon as this process falls silent.
 * work-queue-3  A message is answered once: done, put back, refused, or left, which says nothing and lets it come to another in
 *     its time.
 * work-queue-4  A server that lost its store comes back without the consumer: it is created again.
 * work-queue-5  A node that dies takes along what was asked of it: who hears nothing asks again.
 */

import type { Consumer, JsMsg } from "@nats-io/jetstream";
import { openEnding } from "../../time/ending.ts";
import { unlessAborted } from "../../time/unless-aborted.ts";
import type { Bus } from "../bus.ts";
import { messagesUntil } from "../streams/follow/messages-until.ts";
import { ensureWorkConsumer, type WorkConsumer } from "./work-consumer.ts";

export interface WorkQueueOptions extends Omit<WorkConsumer, "signal"> {
  /** Undefined for work that is over before `ackWaitMs`, and needs no sign of life. */
  readonly heartbeatMs?: number | undefined;
  /** How long a fetch waits for the first message. */
  readonly fetchMs: number;
}

/** Work in the hands of this process, which keeps it there until it is put down in one of four ways. */
export interface Work {
  readonly message: JsMsg;
  done(): void;
  /** Comes again after a while, here or elsewhere. */
  later(delayMs: number): void;
  /** Never comes again: nobody can do it. */
  refuse(reason: string): void;
  leave(): void;
}

export interface WorkQueue {
  /** Up to so many, as they come; ends after `fetchMs`, when the server is lost, or when the signal aborts. */
  next(atMost: number, signal: AbortSignal): AsyncGenerator<Work>;
}

export async function openWorkQueue(bus: Bus, options: WorkQueueOptions): Promise<WorkQueue> {
  const idle_heartbeat = Math.min(1_000, options.fetchMs / 2); // work-queue-5
  const inHand = openHeartbeat(options.heartbeatMs);
  const open = async (signal?: AbortSignal) => {
    await ensureWorkConsumer(bus, { ...options, signal });
    return bus.jetstream.consumers.get(options.stream, options.name);
  };
  let consumer: Consumer | undefined = await open();

  return {
    async *next(atMost, signal) {
      await bus.link.whenUp(signal);
      using ending = openEnding(signal, bus.link.down);
      let left = atMost;
      let overAtMs = Number.POSITIVE_INFINITY;
      try {
        consumer ??= await open(signal); // work-queue-4
        overAtMs = performance.now() + options.fetchMs;
        const fetching = consumer.fetch({ max_messages: atMost, expires: options.fetchMs, idle_heartbeat });
        for await (const message of messagesUntil(await unlessAborted(fetching, bus.link.down), ending.signal)) {
          if (!signal.aborted) yield workFrom(message, inHand); // else it comes to another process in its time
          left -= 1;
          if (left === 0) return; // the server, which has nothing more to send, would be taken for silent
        }
      } catch (error) {
        consumer = undefined;
        const wasOver = left < atMost && performance.now() > overAtMs; // while its work was done: the next fetch judges the silence
        if (!wasOver) throw error;
      }
    },
  };
}

function workFrom(message: JsMsg, inHand: Heartbeat): Work {
  inHand.add(message);
  const putDown = (answer: () => void) => {
    inHand.remove(message);
    answer();
  };
  return {
    message,
    done: () => putDown(() => message.ack()),
    later: (delayMs) => putDown(() => message.nak(delayMs)),
    refuse: (reason) => putDown(() => message.term(reason)),
    leave: () => putDown(() => {}),
  };
}

type Heartbeat = ReturnType<typeof openHeartbeat>;

/** Tells the server of all work in hand at once, so that one write carries it. There is no timer while there is none. */
function openHeartbeat(intervalMs: number | undefined) {
  const messages = new Set<JsMsg>();
  let timer: NodeJS.Timeout | undefined;
  const beat = () => {
    for (const message of messages) message.working();
  };
  return {
    add(message: JsMsg) {
      if (intervalMs === undefined) return;
      messages.add(message);
      timer ??= setInterval(beat, intervalMs);
    },
    remove(message: JsMsg) {
      messages.delete(message);
      if (messages.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    },
  };
}
