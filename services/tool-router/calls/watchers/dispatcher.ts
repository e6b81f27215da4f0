import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { startTimer } from "#runtime/time/timer.ts";
import type { CallRecord } from "../records/call-record.ts";
import { isOpen } from "../records/states.ts";
import type { CallStore } from "../records/store.ts";
import { createDeliveryId, watcherOf } from "./delivery-id.ts";
import { type Delivery, Watcher, type WatcherMessage } from "./watcher.ts";
import type { CallQueue, Presence, QueuedCall, WatcherFacts } from "./watching.ts";

/*
 * How a call that an external service executes comes to one of the watchers of its tool, and back.
 *
 *   caller's router      the bus                          watcher's router        watcher
 *   create record ─────▶ toolbus_calls
 *   hand ──────────────▶ one of those who watch ─────────▶ desk.take ────────────▶ WatchToolCalls
 *   offer, if nobody ──▶ TOOLBUS_OFFERS, a queue a tool ─▶ desk.receive ─────────▶ WatchToolCalls
 *                        toolbus_calls ◀─── compare-and-set, on any router ─────── AcknowledgeToolCall, SubmitToolResult
 *   waiter ◀──────────── news, with what stands ─────────▶ desk.hear
 *
 * W1  Created before shown: the record stands before the call is handed or offered. It is handed straight once, by who created
 *     it, within a second; from then on the duty of the record offers it, unless it stands in the queue or a router says that it
 *     has it.
 * W2  Resolved by compare-and-set: whoever acknowledges or answers writes the record as it follows from what stands. What this
 *     desk, its queue or a watcher believes decides nothing: of two who both hold a call, one is told that it is too late.
 * W3  Woken by the bus: who waits listens before the record is created, and the news carries the result. It is read again
 *     after each loss of the bus, and the news of a resolved call is told once more by whoever has its duty (due.ts), so that
 *     a router which dies between writing and telling leaves nobody waiting.
 * W4  In one pair of hands: who hands or the queue gives a call to one router at a time, and that to one watcher. An unacknowledged
 *     call goes (back) into the queue when the watcher's stream ends. When its router dies, the queue gives it to another by
 *     itself, and what was handed straight is offered by the duty of its record, which asks each second whether somebody has it.
 *     What was in other hands is read before it is handed on. So is what a watcher neither acknowledges nor answers in its time:
 *     it may still acknowledge, and then W2 says whose the call is.
 * W5  Acknowledged means taken: the call leaves the queue. What then becomes of it when the watcher is lost is decided by
 *     lost-watchers.ts, never here.
 * W6  A watcher has at most its limit in its hands, and no more is asked for than all of them can take. What comes all the same,
 *     since room was taken by another way meanwhile, goes back. Of those that have room, who has the fewest gets the next. Who let
 *     one lapse comes after all others, and has room for one, until it acknowledges or answers.
 */

export interface WatchRequest extends WatcherFacts {
  limit: number;
}

export interface DispatcherParts {
  queue: CallQueue;
  presence: Presence;
  store: Pick<CallStore, "read">;
  /** A watcher left that had taken these calls. */
  onWatcherLost: (taken: CallRecord[]) => void;
  /** How long a watcher may have a call that it neither acknowledges nor answers. */
  acknowledgeMs: number;
}

export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #watchers = new Set<Watcher>();
  /** By call: who has it. */
  readonly #held = new Map<string, Watcher>();

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
  }

  /** Whether the news of a call, or of one that this watcher took, is of interest. */
  isConcerned(callId: string, token: string): boolean {
    return this.#held.has(callId) || (token !== "" && this.#ofToken(token) !== undefined);
  }

  /** Hands calls to a watcher until the signal aborts; another stream of the same watcher ends this one. */
  async *watch(request: WatchRequest, signal: AbortSignal): AsyncGenerator<WatcherMessage> {
    const watcher = new Watcher(request);
    const onAbort = () => watcher.end(signal.reason);
    const message = "this watcher has opened another stream";
    const replaced = () => watcher.end(new Failure("aborted", message, { reason: "STREAM_REPLACED" }));
    this.#ofToken(request.token)?.end(new Failure("aborted", message, { reason: "STREAM_REPLACED" }));
    signal.addEventListener("abort", onAbort, { once: true });
    using _ = this.#parts.presence.show(request, replaced);
    this.#watchers.add(watcher);
    try {
      this.#demand(watcher.tools);
      if (signal.aborted) onAbort();
      for (;;) yield await watcher.next();
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#detach(watcher);
    }
  }

  /** W4: a call straight from the router that recorded it; gives whether a watcher here has it. */
  deliver(offer: QueuedCall): boolean {
    const { record } = offer;
    if (this.#held.has(record.callId)) return true;
    if (this.#nextFor(record.tool) === undefined) return false;
    this.#assign(offer, record);
    return true;
  }

  /** Whether a watcher here has the call. */
  holds(callId: string): boolean {
    return this.#held.has(callId);
  }

  /** W4: an offer from the queue of a tool. */
  onQueued(offer: QueuedCall): void {
    const { record } = offer;
    const delivery = this.#held.get(record.callId)?.delivered.get(record.callId);
    if (delivery)
      delivery.queued = offer; // the queue took this router for lost: what it holds, it holds by the new offer
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
    await this.#reread(callId); // nobody here has heard what it became in between
  }

  #assign(offer: QueuedCall, record: CallRecord): void {
    const { callId, tool } = record;
    const watcher = this.#nextFor(tool);
    if (watcher === undefined) {
      offer.release();
      return;
    }
    const stopTimer = startTimer(this.#parts.acknowledgeMs, () => this.#onAcknowledgeTimeout(watcher, callId));
    const delivery: Delivery = { id: createDeliveryId(watcher.token, callId), record, queued: offer, stopTimer };
    watcher.delivered.set(callId, delivery);
    this.#held.set(callId, watcher);
    this.#watchers.delete(watcher);
    this.#watchers.add(watcher); // of two that have as many, the other is next
    watcher.push({ call: record, deliveryId: delivery.id, withdrawn: false });
    this.#demand(watcher.tools);
  }

  /** W4: it may be read by now and not be told that it is over: whoever acknowledges or answers first has it. */
  #onAcknowledgeTimeout(watcher: Watcher, callId: string): void {
    const delivery = watcher.release(callId);
    if (delivery === undefined) return;
    watcher.isSuspect = true;
    watcher.retract(callId);
    this.#held.delete(callId);
    this.#demand(watcher.tools);
    delivery.queued.release();
  }

  /** What stands of a call that this desk has to do with: with who has it, or with who has taken it. */
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

  /** After a loss of news: what is held is looked at again. */
  async rereadAll(): Promise<void> {
    for (const callId of [...this.#held.keys()]) await this.#reread(callId);
  }

  async #reread(callId: string): Promise<void> {
    const record = await this.#parts.store.read(callId).catch(() => undefined); // the next news says it
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
      const watchers = [...this.#watchers].filter((one) => one.tools.has(tool));
      if (watchers.length === 0) this.#parts.queue.stop(tool);
      else
        this.#parts.queue.demand(
          tool,
          watchers.reduce((sum, { free }) => sum + free, 0),
        );
    }
  }

  #nextFor(tool: string): Watcher | undefined {
    let best: Watcher | undefined;
    for (const one of this.#watchers) {
      if (one.tools.has(tool) && one.free > 0 && (best === undefined || isBefore(one, best))) best = one;
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
