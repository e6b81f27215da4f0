// Parts to messages for one reader, and the credit for them. docs/connect-over-nats/README.md, "Parts" and "Credit".

import type { Credit } from "./frames/frame.ts";
import { maxMessageBytes } from "./outbox.ts";
import { PeerError, tooLarge } from "./peer-error.ts";

interface Arrived {
  readonly bytes: Uint8Array;
  readonly owed: Credit;
}

export class Intake implements AsyncIterable<Uint8Array> {
  readonly #window: Credit;
  readonly #grant: (credit: Credit) => void;
  #left: Credit;
  #owed: Credit = { messages: 0, bytes: 0 };
  readonly #arrived: Arrived[] = [];
  #parts: Uint8Array[] = [];
  #isWithin = false;
  #unowed: Credit = { messages: 0, bytes: 0 };
  #isEnded = false;
  #failure: PeerError | undefined;
  #wakeReader: (() => void) | undefined;

  constructor(window: Credit, grant: (credit: Credit) => void) {
    this.#window = window;
    this.#left = window;
    this.#grant = grant;
  }

  /** The payload of an opening, which costs nothing; its rest costs a message. */
  open(body: Uint8Array, more: boolean): void {
    this.#collect(body, more, { messages: 0, bytes: 0 });
    this.#isWithin = false;
  }

  /** Throws if it was not granted, comes after the end, or is too large. */
  take(body: Uint8Array, more: boolean): void {
    if (this.#isEnded) throw outOfPlace("a message after the end");
    const cost = { messages: this.#isWithin ? 0 : 1, bytes: body.length };
    if (cost.messages > this.#left.messages || cost.bytes > this.#left.bytes) {
      throw outOfPlace("sent without credit");
    }
    this.#left = { messages: this.#left.messages - cost.messages, bytes: this.#left.bytes - cost.bytes };
    this.#collect(body, more, cost);
  }

  /** Throws if there was an end before, or parts of a message are missing. */
  finish(): void {
    if (this.#isEnded) throw outOfPlace("a second end");
    if (this.#parts.length > 0) throw outOfPlace("an end in the middle of a message");
    this.end();
  }

  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  fail(error: PeerError): void {
    if (!this.#isEnded) this.#failure ??= error;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const arrived = this.#arrived.shift();
      if (arrived) {
        this.#owe(arrived.owed);
        yield arrived.bytes;
      } else if (this.#failure) throw this.#failure;
      else if (this.#isEnded) return;
      else await this.#waitForMore();
    }
  }

  #collect(body: Uint8Array, more: boolean, cost: Credit): void {
    this.#parts.push(body);
    this.#isWithin = more;
    this.#unowed = { messages: this.#unowed.messages + cost.messages, bytes: this.#unowed.bytes + cost.bytes };
    if (this.#parts.reduce((sum, part) => sum + part.length, 0) > maxMessageBytes) throw tooLarge();
    if (more) {
      if (this.#wakeReader) this.#oweUnfinished();
      return;
    }
    this.#arrived.push({ bytes: Buffer.concat(this.#parts), owed: this.#unowed });
    this.#parts = [];
    this.#unowed = { messages: 0, bytes: 0 };
    this.#wake();
  }

  async #waitForMore(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wakeReader = resolve;
    this.#oweUnfinished();
    await promise;
  }

  #wake(): void {
    this.#wakeReader?.();
    this.#wakeReader = undefined;
  }

  /** The reader waits for these bytes, so they count as taken: a message may be larger than the window. */
  #oweUnfinished(): void {
    const { bytes } = this.#unowed;
    this.#unowed = { ...this.#unowed, bytes: 0 };
    this.#owe({ messages: 0, bytes });
  }

  #owe({ messages, bytes }: Credit): void {
    const owed = { messages: this.#owed.messages + messages, bytes: this.#owed.bytes + bytes };
    this.#owed = owed;
    const isHalf = (part: number, whole: number) => part > 0 && part * 2 >= whole;
    if (this.#isEnded) return;
    if (!isHalf(owed.messages, this.#window.messages) && !isHalf(owed.bytes, this.#window.bytes)) return;
    this.#owed = { messages: 0, bytes: 0 };
    this.#left = { messages: this.#left.messages + owed.messages, bytes: this.#left.bytes + owed.bytes };
    this.#grant(owed);
  }
}

function outOfPlace(what: string): PeerError {
  return new PeerError("internal", what, { delivery: "UNKNOWN" });
}
