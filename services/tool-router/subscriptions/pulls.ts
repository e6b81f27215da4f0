import { createInbox, type Msg, type Subscription } from "@nats-io/transport-node";
import type { Bus } from "#runtime/bus/bus.ts";
import { isPassing } from "#runtime/bus/jetstream-errors.ts";
import { persist } from "#runtime/bus/link.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";

/*
 * Asks consumers for exactly as many messages as can be taken. The client's own iterator fetches ahead, and a fetch of one
 * message costs a round trip before each.
 *
 * L1  What was asked for and has not come is counted; it is asked for more only when that falls below half of the demand.
 * L2  An answer without a message says how much of a request is void. A request that nobody answered is void after its time.
 * L3  A message that comes when nothing is demanded any more goes on to the subscriber all the same, who hands it on.
 */

const EXPIRES_MS = 20_000;
const CHECK_MS = 2_000;
/** A consumer that nobody asks goes; what waits stays in the stream, for the next one. */
const INACTIVE_MS = 3_600_000;
const nanosecondsPerMillisecond = 1_000_000;

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

export interface Pulls extends Disposable {
  /** From now on so many messages can be taken. */
  demand(queue: Queue, count: number): void;
  /** Nothing is asked for any more; what has been sent already still comes. */
  leave(queue: Queue): void;
}

interface Pull {
  readonly queue: Queue;
  readonly inbox: string;
  readonly subscription: Subscription;
  demanded: number;
  /** Requested, and neither come nor void. */
  outstanding: number;
  requestedAt: number;
  isReady: boolean;
}

export function openPulls(bus: Bus, options: PullsOptions): Pulls {
  const { stream, ackWaitMs, onMessage, onFault } = options;
  const pulls = new Map<string, Pull>();
  const closing = new AbortController();

  function open(queue: Queue): Pull {
    const inbox = createInbox();
    const subscription = bus.connection.subscribe(inbox, {
      callback: (error, message) => {
        if (error === null) receive(pull, message);
      },
    });
    const idle = { demanded: 0, outstanding: 0, requestedAt: 0, isReady: false };
    const pull: Pull = { queue, inbox, subscription, ...idle };
    pulls.set(queue.consumer, pull);
    void prepare(pull);
    return pull;
  }

  async function prepare(pull: Pull): Promise<void> {
    const { consumer, filter, description } = pull.queue;
    pull.isReady = false;
    const config = {
      durable_name: consumer,
      description,
      filter_subject: filter,
      ack_policy: "explicit" as const,
      ack_wait: ackWaitMs * nanosecondsPerMillisecond,
      deliver_policy: "all" as const,
      max_ack_pending: 100_000,
      inactive_threshold: INACTIVE_MS * nanosecondsPerMillisecond,
    };
    const add = () => bus.manager.consumers.add(stream, config);
    try {
      await persist(bus.link, add, { what: `creating consumer ${consumer}`, isPassing, signal: closing.signal });
    } catch (error) {
      if (!closing.signal.aborted) onFault(`calls of ${description} cannot be watched: ${messageFromUnknown(error)}`);
      return;
    }
    pull.isReady = true;
    pull.outstanding = 0;
    refill(pull);
  }

  function receive(pull: Pull, message: Msg): void {
    const code = message.headers?.code ?? 0;
    if (code === 0) {
      pull.outstanding = Math.max(0, pull.outstanding - 1);
      onMessage(message);
    } else if (code !== 100) {
      const isVoid = Number(message.headers?.get("Nats-Pending-Messages") || pull.outstanding); // L2
      pull.outstanding = Math.max(0, pull.outstanding - isVoid);
      if (code !== 408) return; // the check asks again, in time
    }
    refill(pull);
  }

  function refill(pull: Pull): void {
    const { queue, inbox, demanded, outstanding, isReady } = pull;
    if (!isReady || !bus.link.isUp || demanded === 0 || outstanding > demanded / 2) return; // L1
    const batch = demanded - outstanding;
    const expires = EXPIRES_MS * nanosecondsPerMillisecond;
    pull.outstanding += batch;
    pull.requestedAt = performance.now();
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${queue.consumer}`;
    bus.connection.publish(subject, JSON.stringify({ batch, expires }), { reply: inbox });
  }

  const checking = setInterval(() => {
    for (const pull of pulls.values()) {
      const isOver = performance.now() - pull.requestedAt > EXPIRES_MS + CHECK_MS;
      if (pull.demanded > 0 && pull.outstanding > 0 && isOver)
        void prepare(pull); // L2: perhaps the consumer is gone
      else refill(pull);
    }
  }, CHECK_MS);
  const endReturns = bus.link.onReturn(() => {
    for (const pull of pulls.values()) void prepare(pull);
  });

  return {
    demand(queue, count) {
      const pull = pulls.get(queue.consumer) ?? (count > 0 ? open(queue) : undefined);
      if (pull === undefined) return;
      pull.demanded = count;
      refill(pull);
    },
    leave({ consumer }) {
      const pull = pulls.get(consumer);
      if (pull === undefined) return;
      pulls.delete(consumer);
      pull.demanded = 0;
      void pull.subscription.drain().catch(() => {}); // the connection is closing, and the subscription with it
    },
    [Symbol.dispose]() {
      closing.abort();
      endReturns();
      clearInterval(checking);
      for (const { subscription } of pulls.values()) subscription.unsubscribe();
    },
  };
}
