import { bytesFromFrame, FrameFlag, FrameKind } from "../frame/frame.ts";
import type { WireHeaders } from "../frame/headers.ts";
import { partLimit } from "../frame/parts.ts";
import type { Progress } from "./channel-options.ts";
import { SendWindow } from "./credit.ts";
import type { CallMux } from "./mux.ts";

export interface FrameContent {
  readonly flags?: number;
  readonly body?: Uint8Array;
  readonly headers?: WireHeaders | undefined;
  /** The sender's inbox, where the peer should learn it. */
  readonly reply?: string | undefined;
}

export interface MessageOptions {
  /** Stand with the first part. */
  readonly headers?: WireHeaders | undefined;
  /** Nothing follows the message. */
  readonly isLast?: boolean;
  /** Comes to `sent` with its last part. */
  readonly progress?: Progress | undefined;
}

/** Numbers the frames of one side of a call and sends them to the other, once it is known where that is. */
export class FrameSender {
  readonly window = new SendWindow();
  readonly #mux: CallMux;
  readonly #introduction: string | undefined;
  #peer: string | undefined;
  #count = 0;
  #sentAt = performance.now();

  /** The first frame of a side with an `introduction` tells the peer that inbox (channel-5 of channel.ts). */
  constructor(mux: CallMux, peer: string | undefined, introduction: string | undefined) {
    this.#mux = mux;
    this.#peer = peer;
    this.#introduction = introduction;
  }

  get hasPeer(): boolean {
    return this.#peer !== undefined;
  }

  get sentAt(): number {
    return this.#sentAt;
  }

  /** Learns where the peer is. */
  meet(peer: string): void {
    this.#peer ??= peer;
    this.window.wake();
  }

  /** Says whether the frame could be handed to the connection. */
  send(kind: FrameKind, content: FrameContent = {}): boolean {
    if (this.#peer === undefined) return false;
    const { flags = FrameFlag.none, body, headers } = content;
    const reply = content.reply ?? (this.#count === 0 ? this.#introduction : undefined);
    const bytes = bytesFromFrame(kind, flags, this.#count, body);
    if (!this.#mux.publish(this.#peer, bytes, { headers, reply })) return false;
    this.#count += 1;
    this.#sentAt = performance.now();
    return true;
  }

  /** Sends a message in as many parts as it needs and as there is credit for; `assertOpen` throws when the call is over. */
  async sendMessage(message: Uint8Array, options: MessageOptions, assertOpen: () => void): Promise<void> {
    let { headers } = options;
    let offset = 0;
    for (let isFirst = true; isFirst || offset < message.length; isFirst = false) {
      const limit = partLimit(this.#mux.maxPayloadBytes, headers);
      const size = await this.#credit(Math.min(message.length - offset, limit), isFirst, assertOpen);
      const hasMore = offset + size < message.length;
      const flags = hasMore ? FrameFlag.more : options.isLast ? FrameFlag.end : FrameFlag.none;
      if (!hasMore && options.progress) options.progress.stage = "sent";
      this.send(FrameKind.data, { flags, body: message.subarray(offset, offset + size), headers });
      headers = undefined;
      offset += size;
    }
  }

  /** Who has to grant more must know where: a side that waits for credit before its first frame shows itself. */
  async #credit(wanted: number, startsMessage: boolean, assertOpen: () => void): Promise<number> {
    for (;;) {
      assertOpen();
      const size = this.hasPeer ? this.window.take(wanted, startsMessage) : undefined; // credit-1 of credit.ts
      if (size !== undefined) return size;
      if (this.#count === 0 && this.#introduction) this.send(FrameKind.heartbeat, { reply: this.#introduction });
      await this.window.changed();
    }
  }
}
