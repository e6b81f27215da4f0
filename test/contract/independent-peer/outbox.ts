// Messages to parts, under the other side's credit. docs/connect-over-nats/README.md, "Parts" and "Credit".

import type { Credit } from "./frames/frame.ts";
import { PeerError, tooLarge } from "./peer-error.ts";

export const maxMessageBytes = 64 * 1024 * 1024;
export const maxPartBytes = 256 * 1024;
const leastPartBytes = 16 * 1024;

export interface Part {
  readonly body: Uint8Array;
  readonly more: boolean;
  readonly end: boolean;
}

export class Outbox {
  readonly #post: (part: Part) => void;
  readonly #onShort: () => void;
  #messages: number;
  #bytes: number;
  #failure: PeerError | undefined;
  #wake: () => void = () => {};
  #isOpen = false;

  /** `onShort` is told when there is too little credit for what is to be sent. */
  constructor(post: (part: Part) => void, { messages, bytes }: Credit, onShort: () => void = () => {}) {
    this.#post = post;
    this.#onShort = onShort;
    this.#messages = messages;
    this.#bytes = bytes;
  }

  add({ messages, bytes }: Credit): void {
    this.#messages += messages;
    this.#bytes += bytes;
    this.#wake();
  }

  /** The other side's inbox is known. */
  open(): void {
    this.#isOpen = true;
    this.#wake();
  }

  /** Resolves when frames can be sent. */
  async opened(): Promise<void> {
    await this.#until(() => this.#isOpen);
  }

  fail(error: PeerError): void {
    this.#failure ??= error;
    this.#wake();
  }

  async send(message: Uint8Array, end = false): Promise<void> {
    if (message.length > maxMessageBytes) throw tooLarge();
    await this.#sendParts(message, 1, end);
  }

  /** What an opening had no room for: it costs a message as another does, which the server's first frame has to grant. */
  async sendRest(rest: Uint8Array, onLastPart: () => void): Promise<void> {
    await this.opened();
    if (this.#messages === 0) throw new PeerError("internal", "no message was granted", { delivery: "UNKNOWN" });
    await this.#sendParts(rest, 1, true, onLastPart);
  }

  async #sendParts(message: Uint8Array, price: number, end: boolean, onLastPart = () => {}): Promise<void> {
    let offset = 0;
    let messages = price;
    do {
      const left = message.length - offset;
      const least = Math.min(left, leastPartBytes);
      const isEnough = () => this.#messages >= messages && this.#bytes >= least;
      if (!isEnough()) this.#onShort();
      await this.#until(isEnough);
      const size = Math.min(left, this.#bytes, maxPartBytes);
      this.#messages -= messages;
      this.#bytes -= size;
      messages = 0;
      const more = size < left;
      if (!more) onLastPart();
      this.#post({ body: message.subarray(offset, offset + size), more, end: end && !more });
      offset += size;
    } while (offset < message.length);
  }

  async #until(isMet: () => boolean): Promise<void> {
    while (this.#failure === undefined && !isMet()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#failure) throw this.#failure;
  }
}
