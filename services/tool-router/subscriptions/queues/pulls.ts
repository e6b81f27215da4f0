import type { Msg, Subscription } from "@nats-io/transport-node";
import type { Bus } from "#runtime/bus/bus.ts";
import { openInbox } from "#runtime/bus/credentials/inbox.ts";
import { listen } from "#runtime/bus/link/listen.ts";
import { whileNobodyWaits } from "#runtime/bus/link/waited.ts";
import { ensureWorkConsumer, nanosFromMs } from "#runtime/bus/work-queue/work-consumer.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";

/*
 * Asks consumers for exactly as many messages as can be taken. The client's own iterator fetches ahead, and a fetch of one
 * message costs a round trip before each.
 *
 * L1  What was asked for and has not come is counted; it is asked for more only when that falls below half of the demand.
 * L2  An answer without a message says how much of a request is void. A request that nobody answered is void after its time.
 * L3  A message that comes when nothing is demanded any more still goes to the subscriber, which releases it.
 */

const EXPIRES_MS = 20_000;
const CHECK_MS = 2_000;
/** A consumer that nobody asks goes; what waits stays in the stream, for the next one. */
const INACTIVE_MS = 3_600_000;

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
    const pull = new Pull(bus, queue, options);
    pulls.set(queue.consumer, pull);
    void whileNobodyWaits(() => pull.prepare()); // a watcher waits longer than its call does for the bus
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
class Pull {
  readonly #bus: Bus;
  readonly #queue: Queue;
  readonly #options: PullsOptions;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #closing = new AbortController();
  #demanded = 0;
  /** Requested, and neither come nor void. */
  #outstanding = 0;
  #requestedAt = 0;
  /** Of the consumer, as far as is known. */
  #state: "missing" | "preparing" | "ready" = "missing";
  /** What was told of a consumer that cannot be made. */
  #fault = "";

  constructor(bus: Bus, queue: Queue, options: PullsOptions) {
    this.#bus = bus;
    this.#inbox = openInbox(bus.connection);
    this.#queue = queue;
    this.#options = options;
    this.#subscription = listen(bus, this.#inbox, (message) => this.#receive(message));
  }

  /** Makes sure that the consumer is there, and takes every request so far for void. */
  async prepare(): Promise<void> {
    const { stream, ackWaitMs, onFault } = this.#options;
    const { consumer, filter, description } = this.#queue;
    const { signal } = this.#closing;
    if (this.#state === "preparing") return; // as long as it takes
    this.#state = "preparing";
    try {
      await ensureWorkConsumer(this.#bus, {
        ...{ stream, name: consumer, filterSubject: filter, ackWaitMs, signal },
        more: {
          description,
          deliver_policy: "all",
          max_ack_pending: 100_000,
          inactive_threshold: nanosFromMs(INACTIVE_MS),
        },
      });
    } catch (error) {
      this.#state = "missing";
      const fault = `calls of ${description} cannot be watched: ${messageFromUnknown(error)}`;
      if (!signal.aborted && fault !== this.#fault) onFault(fault);
      this.#fault = fault;
      return;
    }
    this.#state = "ready";
    this.#fault = "";
    this.#outstanding = 0;
    this.#refill();
  }

  demand(count: number): void {
    this.#demanded = count;
    this.#refill();
  }

  #receive(message: Msg): void {
    const code = message.headers?.code ?? 0;
    if (code === 0) {
      this.#outstanding = Math.max(0, this.#outstanding - 1);
      this.#options.onMessage(message);
    } else if (code !== 100) {
      const isVoid = Number(message.headers?.get("Nats-Pending-Messages") || this.#outstanding); // L2
      this.#outstanding = Math.max(0, this.#outstanding - isVoid);
      if (code !== 408 && this.#state === "ready") this.#state = "missing"; // perhaps: the check makes it anew, in time
    }
    this.#refill();
  }

  #refill(): void {
    const isEnough = this.#demanded === 0 || this.#outstanding > this.#demanded / 2; // L1
    if (isEnough || this.#state !== "ready" || !this.#bus.link.isUp || this.#closing.signal.aborted) return;
    const batch = this.#demanded - this.#outstanding;
    const expires = nanosFromMs(EXPIRES_MS);
    this.#outstanding += batch;
    this.#requestedAt = performance.now();
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${this.#options.stream}.${this.#queue.consumer}`;
    this.#bus.connection.publish(subject, JSON.stringify({ batch, expires }), { reply: this.#inbox });
  }

  /** L2: a request that nobody answered in its time may mean that the consumer is gone. */
  check(): void {
    const isOver = performance.now() - this.#requestedAt > EXPIRES_MS + CHECK_MS;
    const isGone = this.#state === "missing" || (this.#outstanding > 0 && isOver);
    if (this.#demanded > 0 && isGone) void this.prepare();
    else this.#refill();
  }

  /** Nothing is asked for any more; what has been sent already still comes. */
  close(): void {
    this.#closing.abort();
    this.#demanded = 0;
    void this.#subscription.drain().catch(() => {}); // the connection is closing, and the subscription with it
  }
}
