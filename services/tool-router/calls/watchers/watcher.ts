import { createEventQueue } from "#runtime/collections/feeds/event-queue.ts";
import type { CallRecord } from "../records/record/call-record.ts";
import type { QueuedCall, WatcherFacts } from "./ports.ts";

/** What a watcher is sent: a call to execute, or the withdrawal of a call that needs no result any more. */
export interface WatcherMessage {
  readonly call: CallRecord;
  readonly deliveryId: string;
  readonly withdrawn: boolean;
}

export interface Delivery {
  readonly id: string;
  readonly record: CallRecord;
  queued: QueuedCall;
  /** Stops the timer of its acknowledgement. */
  readonly stopTimer: () => void;
}

/** The stream of one watcher, with the calls that it holds. */
export class Watcher {
  readonly token: string;
  readonly principal: string;
  readonly tools: ReadonlySet<string>;
  readonly limit: number;
  /** Neither acknowledged nor resolved, by call. The watcher loses them when its stream ends. */
  readonly delivered = new Map<string, Delivery>();
  /** Acknowledged and not resolved, by call. */
  readonly taken = new Map<string, CallRecord>();
  /** It let a call time out, and has acknowledged or answered none since. */
  isSuspect = false;
  readonly #messages = createEventQueue<WatcherMessage>({ limit: Number.POSITIVE_INFINITY });
  /** In order; throws what ended it. */
  readonly messages: AsyncIterable<WatcherMessage> = this.#messages;
  #hasEnded = false;

  constructor({ token, principal, tools, limit }: WatcherFacts & { limit: number }) {
    this.token = token;
    this.principal = principal;
    this.tools = new Set(tools);
    this.limit = limit;
  }

  get free(): number {
    const limit = this.isSuspect ? 1 : this.limit;
    return this.#hasEnded ? 0 : Math.max(0, limit - this.delivered.size);
  }

  /** The call is no longer held, or it was acknowledged. */
  release(callId: string): Delivery | undefined {
    const delivery = this.delivered.get(callId);
    delivery?.stopTimer();
    this.delivered.delete(callId);
    return delivery;
  }

  push(handed: WatcherMessage): void {
    this.#messages.push(handed);
  }

  /** Takes back a call that the watcher has not read yet; false if it has. */
  retract(callId: string): boolean {
    return this.#messages.remove(({ call, withdrawn }) => call.callId === callId && !withdrawn);
  }

  end(error: unknown): void {
    this.#hasEnded = true;
    this.#messages.remove(() => true);
    this.#messages.end(error);
  }
}
