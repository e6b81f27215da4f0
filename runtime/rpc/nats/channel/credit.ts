import type { ByteBudget } from "../../handling/messages/byte-budget.ts";
import type { Credit } from "../frame/frame.ts";

/*
 * Flow control: nobody sends what was not granted.
 *
 *   sender   SendWindow.take ──── frames ────▶ ReceiveWindow.arrived   receiver
 *            SendWindow.add  ◀─── credit ───── ReceiveWindow.grant  ◀── consumed
 *
 * credit-1  A sender holds a message back until it has credit for one message and for each byte; it sends parts as credit comes.
 * credit-2  granted-and-not-arrived + arrived-and-not-consumed never exceeds the window, in bytes and in messages.
 * credit-3  All that is granted and has not arrived, over all calls of a connection, stays within one budget, since nats-server cuts
 *     off connections that it holds too much for, not calls. Each call has a small floor beyond it, so that none starves.
 *     Requests that open calls cost no credit: their sender bounds what of them nobody has taken yet, in the same way.
 * credit-4  A window starts small and doubles as it is used: idle streams hold little of the budget.
 */

const KIB = 1024;

/** Half of what nats-server holds for a slow connection by default. */
export const CONNECTION_BUDGET_BYTES = 32 * 1024 * KIB;
/** What a connection sends in openings of calls of which nothing has been heard: the servers it calls have many callers. */
export const OPENINGS_BUDGET_BYTES = 4 * 1024 * KIB;
/** What a stream is granted when it opens. */
export const FIRST_CREDIT: Credit = { messages: 64, bytes: 64 * KIB };
export const LARGEST_WINDOW_BYTES = 1024 * KIB;
/** What each stream may be granted when the budget is used up, so that none starves. */
export const FLOOR_BYTES = 32 * KIB;
/** A sender waits rather than send a smaller piece than this of a message that goes on. */
export const SMALLEST_PART_BYTES = 16 * KIB;

/** The receiver's side of one direction of a call. */
export class ReceiveWindow {
  readonly #budget: ByteBudget;
  readonly #messages: number;
  #bytes: number;
  #granted: { messages: number; bytes: number } = { messages: 0, bytes: 0 };
  #held = { messages: 0, bytes: 0 };

  constructor(budget: ByteBudget, first: Credit) {
    this.#budget = budget;
    this.#messages = first.messages;
    this.#bytes = first.bytes;
  }

  /** Counts as granted what the call's opening has granted; its bytes have been taken from the budget. */
  adopt(credit: Credit): void {
    this.#granted.messages += credit.messages;
    this.#granted.bytes += credit.bytes;
  }

  /** Books what came in; false when the sender had no right to it. */
  arrived(bytes: number, messages: number): boolean {
    this.#granted.bytes -= bytes;
    this.#granted.messages -= messages;
    this.#budget.giveBack(bytes);
    this.#held.bytes += bytes;
    this.#held.messages += messages;
    return this.#granted.bytes >= 0 && this.#granted.messages >= 0;
  }

  consumed(bytes: number, messages: number): void {
    this.#held.bytes -= bytes;
    this.#held.messages -= messages;
  }

  /** What to grant, if it is worth a frame: half a window, or the start. */
  grant(): Credit | undefined {
    const messages = Math.max(this.#messages - this.#granted.messages - this.#held.messages, 0);
    const used = this.#granted.bytes + this.#held.bytes;
    const isStart = used === 0 && this.#granted.messages === 0 && this.#held.messages === 0;
    const isWorthBytes = this.#bytes - used >= this.#bytes / 2;
    if (!isWorthBytes && messages < this.#messages / 2) return undefined;
    if (isWorthBytes && !isStart) this.#bytes = Math.min(this.#bytes * 2, LARGEST_WINDOW_BYTES); // credit-4
    const bytes = this.#budget.take(Math.max(this.#bytes - used, 0), FLOOR_BYTES - used); // credit-2, credit-3
    if (bytes === 0 && messages === 0) return undefined;
    this.#granted.bytes += bytes;
    this.#granted.messages += messages;
    return { messages, bytes };
  }

  close(): void {
    this.#budget.giveBack(this.#granted.bytes);
    this.#granted = { messages: 0, bytes: 0 };
  }
}

/** The sender's side of one direction of a call; one message is sent at a time. */
export class SendWindow {
  #messages = 0;
  #bytes = 0;
  #waiter: PromiseWithResolvers<void> | undefined;

  add(credit: Credit): void {
    this.#messages += credit.messages;
    this.#bytes += credit.bytes;
    this.wake();
  }

  /** Lets a waiting sender look again, because credit has come or the call is over. */
  wake(): void {
    this.#waiter?.resolve();
    this.#waiter = undefined;
  }

  get messages(): number {
    return this.#messages;
  }

  /** Takes credit for a piece of at most `wanted` bytes, or says that there is not enough for one. */
  take(wanted: number, startsMessage: boolean): number | undefined {
    if (startsMessage && this.#messages === 0) return undefined;
    if (this.#bytes < Math.min(wanted, SMALLEST_PART_BYTES)) return undefined;
    const taken = Math.min(wanted, this.#bytes);
    this.#bytes -= taken;
    if (startsMessage) this.#messages -= 1;
    return taken;
  }

  /** Resolves when it is worth trying again. */
  changed(): Promise<void> {
    this.#waiter ??= Promise.withResolvers<void>();
    return this.#waiter.promise;
  }
}
