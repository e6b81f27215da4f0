import { MsgHdrsImpl } from "@nats-io/nats-core";

const lineBreak = /[\r\n]/;

/**
 * Headers as text that is written once, in the order given, without the look-ups that each `set` and `append` would cost.
 *
 * Made for @nats-io/nats-core 3.4.0.
 */
export class PlainHeaders extends MsgHdrsImpl {
  #text = "NATS/1.0\r\n";
  #bytes: Uint8Array | undefined;

  /** For a key that is not there yet. The value holds no line breaks. */
  add(key: string, value: string): this {
    this.#text += `${key}: ${value}\r\n`;
    this.#bytes = undefined;
    return this;
  }

  /** As `add`, but refuses a value with a line break, as the client does. */
  override set(key: string, value: string): void {
    if (lineBreak.test(value)) throw new TypeError(`the header ${key} cannot hold a line break`);
    this.add(key, value);
  }

  override encode(): Uint8Array {
    this.#bytes ??= Buffer.from(this.toString(), "utf8");
    return this.#bytes;
  }

  override toString(): string {
    return `${this.#text}\r\n`;
  }
}
