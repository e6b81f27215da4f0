import type { Msg, Subscription } from "@nats-io/transport-node";
import type { Bus } from "#runtime/bus/bus.ts";
import { openInbox } from "#runtime/bus/credentials/inbox.ts";
import { callPatience } from "#runtime/bus/link/call-patience.ts";
import { retryOnBus } from "#runtime/bus/link/link.ts";
import { listen } from "#runtime/bus/link/listen.ts";
import { ensureWorkConsumer, nanosFromMs } from "#runtime/bus/work-queue/work-consumer.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";

/*
 * Asks consumers for exactly as many messages as can be taken. The client's own iterator fetches ahead, and a fetch of one
 * message costs a round trip before each.
 *
 * pulls-1  What was asked for and has not come is counted; it is asked for more only when that falls below half of the demand.
 * pulls-2  An answer without a message says how much of a request is void. A request that nobody answered is void after its time.
 * pulls-3  A message that comes when nothing is demanded any more still goes to the subscriber, which releases it.
 * pulls-4  A stream takes a thousand consumers, so a queue has one only while messages come. It is made when a message waits: its subject is
 *     subscribed to, and the stream is asked for what was published before. It is let go when a request ends empty and nothing waits.
 */

const EXPIRES_MS = 20_000;
const CHECK_MS = 2_000;
const LOOK_EVERY_MS = 30_000; // pulls-4
/** A consumer that nobody asks goes, unless somebody holds what it gave; what waits stays in the stream, for the next one. */
const INACTIVE_MS = 300_000;

export interface Queue {
  consumer: string;
  filter: string;
  description: string;
}

export interface PullsOptions {
  stream: string;
  ackWaitMs: number;
  onMessage(message: Msg): void;
  onFault(fault: string): void;
}

export function openPulls(bus: Bus, options: PullsOptions) {
  const pulls = new Map<string, Pull>();
  const checking = setInterval(() => {
    for (const pull of pulls.values()) pull.check();
  }, CHECK_MS);
  const endReturns = bus.link.onReturn(() => {
    for (const pull of pulls.values()) void pull.prepare();
  });

  function open(queue: Queue): Pull {
    const pull = openPull(bus, queue, options);
    pulls.set(queue.consumer, pull);
    void callPatience.exit(() => pull.prepare()); // a watcher waits longer than its call does for the bus
    return pull;
  }

  return {
    /** From now on so many messages can be taken. */
    demand(queue: Queue, count: number): void {
      const pull = pulls.get(queue.consumer) ?? (count > 0 ? open(queue) : undefined);
      pull?.demand(count);
    },
    /** Nothing is asked for any more; what has been sent already still comes. */
    leave({ consumer }: Queue): void {
      pulls.get(consumer)?.close();
      pulls.delete(consumer);
    },
    [Symbol.dispose]() {
      endReturns();
      clearInterval(checking);
      for (const pull of pulls.values()) pull.close();
    },
  };
}

/** What is asked of one consumer. */
function openPull(
  bus: Bus,
  { consumer: name, filter: filterSubject, description }: Queue,
  { stream, ackWaitMs, onMessage, onFault }: PullsOptions,
) {
  const closing = new AbortController();
  const { signal } = closing;
  const settings = {
    description,
    deliver_policy: "all",
    max_ack_pending: 100_000,
    inactive_threshold: nanosFromMs(INACTIVE_MS),
  } as const;
  const inbox = openInbox(bus.connection);
  const subscription = listen(bus, inbox, receive);
  let demanded = 0;
  /** Requested, and neither come nor void. */
  let outstanding = 0;
  let requestedAt = 0;
  /** Of the consumer, as far as is known. */
  let state: "missing" | "unneeded" | "preparing" | "ready" = "missing";
  let isNeeded = false;
  let lookedAt = 0;
  let published: Subscription | undefined;
  /** What was told of a consumer that cannot be made. */
  let told = "";

  /** Makes sure that the consumer is there, and takes every request so far for void. */
  async function prepare(): Promise<void> {
    if (state === "preparing" || signal.aborted) return; // as long as it takes
    state = "preparing";
    try {
      if (!isNeeded) await findWaiting();
      if (!isNeeded) {
        state = "unneeded";
        return;
      }
      await ensureWorkConsumer(bus, { stream, name, filterSubject, ackWaitMs, more: settings, signal });
    } catch (error) {
      state = "missing";
      const fault = `calls of ${description} cannot be watched: ${messageFromUnknown(error)}`;
      if (!signal.aborted && fault !== told) onFault(fault);
      told = fault;
      return;
    }
    state = "ready";
    told = "";
    outstanding = 0;
    refill();
  }

  async function findWaiting(): Promise<void> {
    published ??= listen(bus, filterSubject, onPublished); // pulls-4: first, so that none is missed
    const find = () => bus.manager.streams.info(stream, { subjects_filter: filterSubject });
    const { state: found } = await retryOnBus(bus.link, find, { what: `looking for messages of ${name}`, signal });
    lookedAt = performance.now();
    if (Object.keys(found.subjects ?? {}).length > 0) onPublished(); // else one may have come meanwhile
  }

  function onPublished(): void {
    isNeeded = true;
    published?.unsubscribe();
    published = undefined;
    void callPatience.exit(prepare); // which does nothing while it is under way
  }

  function receive(message: Msg): void {
    const code = message.headers?.code ?? 0;
    if (code === 0) {
      outstanding = Math.max(0, outstanding - 1);
      onMessage(message);
    } else if (code !== 100) {
      const isVoid = Number(message.headers?.get("Nats-Pending-Messages") || outstanding); // pulls-2
      outstanding = Math.max(0, outstanding - isVoid);
      if (code !== 404 && code !== 408 && state === "ready") state = "missing"; // perhaps: the check makes it anew, in time
      if (code === 408 && outstanding === 0 && state === "ready") isNeeded = false; // pulls-4
      if (!isNeeded) void callPatience.exit(prepare);
    }
    refill();
  }

  function refill(): void {
    const batch = outstanding > demanded / 2 ? 0 : demanded - outstanding; // pulls-1
    if (batch <= 0 || state !== "ready" || !bus.link.isUp || signal.aborted) return;
    outstanding += batch;
    requestedAt = performance.now();
    const request = { batch, expires: nanosFromMs(EXPIRES_MS) };
    bus.connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`, JSON.stringify(request), { reply: inbox });
  }

  /** pulls-2: a request that nobody answered in its time may mean that the consumer is gone. */
  function check(): void {
    const isOver = performance.now() - requestedAt > EXPIRES_MS + CHECK_MS;
    const isLookDue = state === "unneeded" && performance.now() - lookedAt > LOOK_EVERY_MS;
    const isGone = state === "missing" || isLookDue || (outstanding > 0 && isOver);
    if (demanded > 0 && isGone) void prepare();
    else refill();
  }

  return {
    prepare,
    check,
    demand(count: number): void {
      demanded = count;
      refill();
    },
    /** Nothing is asked for any more; what has been sent already still comes. */
    close(): void {
      closing.abort();
      published?.unsubscribe();
      demanded = 0;
      void subscription.drain().catch(() => {}); // the connection is closing, and the subscription with it
    },
  };
}

type Pull = ReturnType<typeof openPull>;
