import type { CallRecord } from "../../calls/records/record/call-record.ts";
import type { CallQueue, Presence, QueuedCall, WatcherFacts } from "../../calls/watchers/ports.ts";

/** The queues in memory, with the same promises as those of the bus: a call stands once, and is in one pair of hands. */
export class MemoryOffers implements CallQueue {
  readonly standing = new Map<string, CallRecord>();
  /** What was handed out and has neither been settled nor handed on. */
  readonly inHands = new Set<string>();
  readonly demands = new Map<string, number>();
  onOffer: (offer: QueuedCall) => void = () => {};
  /** How often each call was handed out. */
  readonly #times = new Map<string, number>();

  /** Whether calls are taken straight; else they are offered. */
  onHand: (offer: QueuedCall) => boolean = () => false;

  deliver(record: CallRecord): boolean {
    return this.onHand({ record, isOld: false, ack: () => {}, release: () => void this.enqueue(record, "again") });
  }

  async isQueued({ callId }: CallRecord): Promise<boolean> {
    return this.standing.has(callId);
  }

  async enqueue(record: CallRecord, standing: "first" | "again"): Promise<void> {
    if (standing === "again") this.#times.set(record.callId, 1);
    if (!this.standing.has(record.callId)) this.standing.set(record.callId, record);
    this.#handOut();
  }

  async remove({ callId }: CallRecord): Promise<void> {
    this.standing.delete(callId);
  }

  demand(tool: string, count: number): void {
    this.demands.set(tool, count);
    queueMicrotask(() => this.#handOut());
  }

  stop(tool: string): void {
    this.demands.delete(tool);
  }

  #handOut(): void {
    for (const [callId, record] of [...this.standing]) {
      if (this.inHands.has(callId) || (this.demands.get(record.tool) ?? 0) === 0) continue;
      const times = (this.#times.get(callId) ?? 0) + 1;
      this.#times.set(callId, times);
      this.inHands.add(callId);
      const end = (isDone: boolean) => {
        if (!this.inHands.delete(callId)) return;
        if (isDone) this.standing.delete(callId);
        else queueMicrotask(() => this.#handOut());
      };
      this.onOffer({ record, isOld: times > 1, ack: () => end(true), release: () => end(false) });
    }
  }
}

/** Who watches, as a test says or a desk shows. */
export class MemoryPresence implements Presence {
  readonly tools = new Set<string>();
  readonly watchers = new Map<string, () => void>();
  readonly #principals = new Map<string, string>();

  isWatched = async (tool: string): Promise<boolean> => this.tools.has(tool);
  isWatchedBy = async (principal: string, tool: string): Promise<boolean> => this.#principals.get(tool) === principal;
  isWatching = async (watcher: string): Promise<boolean> => this.watchers.has(watcher);

  show({ token: watcher, principal, tools }: WatcherFacts, onReplaced: () => void): Disposable {
    for (const tool of tools) this.#principals.set(tool, principal);
    this.watchers.get(watcher)?.();
    this.watchers.set(watcher, onReplaced);
    for (const tool of tools) this.tools.add(tool);
    return {
      [Symbol.dispose]: () => {
        for (const tool of tools) this.tools.delete(tool);
        if (this.watchers.get(watcher) === onReplaced) this.watchers.delete(watcher);
      },
    };
  }
}
