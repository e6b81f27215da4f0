import { addAbortListener } from "node:events";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { startTimer } from "#runtime/time/timer.ts";
import type { CallRecord } from "../records/record/call-record.ts";
import { isOpen } from "../records/record/states.ts";
import type { CallStore } from "../records/store.ts";
import { type DeliveryIds, watcherOf } from "./delivery-id.ts";
import type { CallQueue, Presence, QueuedCall, WatcherFacts } from "./ports.ts";
import { type Delivery, Watcher, type WatcherMessage } from "./watcher.ts";

/*
 * Dispatches the calls of an external tool to the services that watch for them, and takes their results back.
 *
 *   caller's router       bus                                 watcher's router           watcher
 *   create the record ──▶ toolbus_calls
 *   deliver ────────────▶ a router with a watcher of the tool ▶ dispatcher.deliver ─────▶ WatchToolCalls
 *   or enqueue ─────────▶ TOOLBUS_OFFERS, a queue a tool ─────▶ dispatcher.onQueued ────▶ WatchToolCalls
 *                         toolbus_calls ◀── compare-and-set, by any router ────────────── AcknowledgeToolCall, SubmitToolResult
 *   waiter ◀───────────── change, with the record ────────────▶ dispatcher.onChanged
 *
 * dispatcher-1  The record exists before the call is delivered or enqueued. The router that created it delivers the call directly once,
 *     within a second. After that the record's due work enqueues the call, unless it is queued or a router says that it holds it.
 * dispatcher-2  An acknowledgement and a result are compare-and-sets of the record. Nothing that a dispatcher, a queue or a watcher
 *     believes decides: of two watchers that hold one call, the second is refused.
 * dispatcher-3  The caller's router subscribes before it creates the record, and the change carries the result. After each loss of the bus
 *     it reads the record again. The due work of a resolved call announces the change once more, so nobody waits in vain when
 *     a router dies between writing and announcing.
 * dispatcher-4  One watcher holds a call at a time. A call that is not acknowledged returns to the queue when the watcher's stream ends.
 *     When the watcher's router dies, the queue redelivers a queued call by itself; for a call that was delivered directly, its due work
 *     asks every second whether a router holds it, and enqueues it if none does. The dispatcher reads the record of a call that was held
 *     before. It also releases a call that its watcher neither acknowledges nor answers in time; that watcher may still acknowledge it, and
 *     then dispatcher-2 decides.
 * dispatcher-5  An acknowledged call belongs to its watcher and leaves the queue. lost-watchers.ts decides what becomes of it when the
 *     watcher is lost.
 * dispatcher-6  A watcher holds at most its limit, and a router demands no more than its watchers have room for. A call for which no room
 *     is left goes back. The watcher with the fewest calls gets the next one. A watcher that let a call time out comes last, and has room
 *     for one call until it acknowledges or answers.
 */

export interface WatchRequest extends WatcherFacts {
  limit: number;
}

export interface DispatcherParts {
  queue: CallQueue;
  presence: Presence;
  store: Pick<CallStore, "read">;
  deliveryIds: Pick<DeliveryIds, "create">;
  /** Whether the principal may have calls of the tool now. */
  mayWatch: (principal: string, tool: string) => boolean;
  /** A watcher was lost that had acknowledged these calls. */
  onWatcherLost: (taken: CallRecord[]) => void;
  /** How long a watcher may hold a call without acknowledging or answering it. */
  acknowledgeMs: number;
}

export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #watchers = new Set<Watcher>();
  /** The watcher that holds a call, by call. */
  readonly #held = new Map<string, Watcher>();

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
  }

  /** Whether a change of this call matters here: a watcher here holds it, or acknowledged it. */
  isConcerned(callId: string, token: string): boolean {
    return this.#held.has(callId) || (token !== "" && this.#ofToken(token) !== undefined);
  }

  /** Yields the watcher's calls until the signal aborts. Another stream of the same watcher ends this one. */
  async *watch(request: WatchRequest, signal: AbortSignal): AsyncGenerator<WatcherMessage> {
    const watcher = new Watcher(request);
    const replace = (one: Watcher | undefined) =>
      one?.end(new Failure("aborted", "this watcher has opened another stream", { reason: "STREAM_REPLACED" }));
    replace(this.#ofToken(request.token));
    using _ending = addAbortListener(signal, () => watcher.end(signal.reason));
    using _shown = this.#parts.presence.show(request, () => replace(watcher));
    this.#watchers.add(watcher);
    try {
      this.#demand(watcher.tools);
      yield* watcher.messages;
    } finally {
      this.#detach(watcher);
    }
  }

  /** dispatcher-4: a call that was delivered directly. Returns whether a watcher here holds it. */
  deliver(offer: QueuedCall): boolean {
    const { record } = offer;
    if (this.#held.has(record.callId)) return true;
    if (this.#nextFor(record.tool) === undefined) return false;
    this.#assign(offer, record);
    return true;
  }

  holds(callId: string): boolean {
    return this.#held.has(callId);
  }

  /** dispatcher-4: a call from the queue of its tool. */
  onQueued(offer: QueuedCall): void {
    const { record } = offer;
    const delivery = this.#held.get(record.callId)?.delivered.get(record.callId);
    if (delivery)
      delivery.queued = offer; // the queue took this router for lost, and delivered again
    else if (offer.isOld) void this.#onQueuedAgain(offer);
    else this.#assign(offer, record);
  }

  async #onQueuedAgain(offer: QueuedCall): Promise<void> {
    const { callId } = offer.record;
    try {
      const standing = await this.#parts.store.read(callId);
      if (!standing || !isOpen(standing) || standing.taken) return offer.ack();
      this.#assign(offer, standing);
    } catch {
      return offer.release(); // another router may be able to read it
    }
    await this.#reread(callId); // it may have changed before this router held it
  }

  #assign(offer: QueuedCall, record: CallRecord): void {
    const { callId, tool } = record;
    const watcher = this.#nextFor(tool);
    if (watcher === undefined) {
      offer.release();
      this.#demand(new Set([tool])); // it may have been granted to others since
      return;
    }
    const stopTimer = startTimer(this.#parts.acknowledgeMs, () => this.#onAcknowledgeTimeout(watcher, callId));
    const id = this.#parts.deliveryIds.create(watcher, callId);
    const delivery: Delivery = { id, record, queued: offer, stopTimer };
    watcher.delivered.set(callId, delivery);
    this.#held.set(callId, watcher);
    this.#watchers.delete(watcher);
    this.#watchers.add(watcher); // of two that have as many, the other is next
    watcher.push({ call: record, deliveryId: delivery.id, withdrawn: false });
    this.#demand(watcher.tools);
  }

  /** dispatcher-4: the watcher may have read the call by now. It is not withdrawn: whoever acknowledges or answers first has it. */
  #onAcknowledgeTimeout(watcher: Watcher, callId: string): void {
    const delivery = watcher.release(callId);
    if (delivery === undefined) return;
    watcher.isSuspect = true;
    watcher.retract(callId);
    this.#held.delete(callId);
    this.#demand(watcher.tools);
    delivery.queued.release();
  }

  /** A call that a watcher here holds or has acknowledged has this record now. */
  onChanged(record: CallRecord): void {
    const holder = this.#held.get(record.callId);
    const token = watcherOf(record.deliveryId);
    const taker = holder?.token === token ? holder : this.#ofToken(token);
    for (const watcher of new Set([holder, taker])) if (watcher) this.#notify(watcher, record);
  }

  #notify(watcher: Watcher, record: CallRecord): void {
    const { callId, deliveryId } = record;
    const isOver = !isOpen(record);
    if (!isOver && !record.taken) return;
    const isOwn = record.taken && watcherOf(deliveryId) === watcher.token;
    const delivery = watcher.release(callId);
    const knows = isOwn || (delivery !== undefined && !watcher.retract(callId));
    const isWithdrawn = isOver ? record.state === State.CANCELED || record.state === State.EXPIRED : !isOwn;
    delivery?.queued.ack();
    if (isOwn || (delivery !== undefined && isOver && !isWithdrawn)) watcher.isSuspect = false;
    if (isOwn && !isOver) {
      watcher.taken.set(callId, record);
      this.#held.set(callId, watcher);
    } else {
      watcher.taken.delete(callId);
      if (this.#held.get(callId) === watcher) this.#held.delete(callId);
    }
    if (isWithdrawn && knows) watcher.push({ call: record, deliveryId: delivery?.id ?? deliveryId, withdrawn: true });
    this.#demand(watcher.tools);
  }

  /** Reads all calls again that are held here, after changes may have been missed. */
  async rereadAll(): Promise<void> {
    for (const callId of [...this.#held.keys()]) await this.#reread(callId);
  }

  async #reread(callId: string): Promise<void> {
    const record = await this.#parts.store.read(callId).catch(() => undefined); // the next change says it
    if (record) this.onChanged(record);
  }

  #detach(watcher: Watcher): void {
    watcher.end(new Error("the watcher has left"));
    this.#watchers.delete(watcher);
    for (const callId of [...watcher.delivered.keys(), ...watcher.taken.keys()]) this.#held.delete(callId);
    this.#demand(watcher.tools);
    for (const callId of [...watcher.delivered.keys()]) watcher.release(callId)?.queued.release();
    if (watcher.taken.size > 0) this.#parts.onWatcherLost([...watcher.taken.values()]);
  }

  #demand(tools: ReadonlySet<string>): void {
    for (const tool of tools) {
      const watchers = [...this.#watchers].filter((one) => this.#isFor(one, tool));
      if (watchers.length === 0) this.#parts.queue.stop(tool);
      else
        this.#parts.queue.demand(
          tool,
          watchers.reduce((sum, { free }) => sum + free, 0),
        );
    }
  }

  #isFor({ tools, principal }: Watcher, tool: string): boolean {
    return tools.has(tool) && this.#parts.mayWatch(principal, tool);
  }

  #nextFor(tool: string): Watcher | undefined {
    let best: Watcher | undefined;
    for (const one of this.#watchers) {
      if (this.#isFor(one, tool) && one.free > 0 && (best === undefined || isBefore(one, best))) best = one;
    }
    return best;
  }

  #ofToken(token: string): Watcher | undefined {
    for (const one of this.#watchers) if (one.token === token) return one;
    return undefined;
  }
}

function isBefore(one: Watcher, other: Watcher): boolean {
  if (one.isSuspect !== other.isSuspect) return other.isSuspect;
  return one.delivered.size < other.delivered.size;
}
