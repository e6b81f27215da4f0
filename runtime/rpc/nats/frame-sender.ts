import { SendWindow } from "./credit.ts";
import { bytesFromFrame, FrameFlag, type FrameKind } from "./frame.ts";
import type { WireHeaders } from "./headers.ts";
import type { CallMux } from "./mux.ts";

export interface FrameContent {
  readonly flags?: number;
  readonly body?: Uint8Array;
  readonly headers?: WireHeaders | undefined;
  /** The sender's inbox, where the peer should learn it. */
  readonly reply?: string | undefined;
}

/** Numbers the frames of one side of a call and sends them to the other, once it is known where that is. */
export class FrameSender {
  readonly window = new SendWindow();
  readonly #mux: CallMux;
  #peer: string | undefined;
  #count = 0;
  #sentAt = Date.now();

  constructor(mux: CallMux, peer: string | undefined) {
    this.#mux = mux;
    this.#peer = peer;
  }

  get hasPeer(): boolean {
    return this.#peer !== undefined;
  }

  /** How many frames were sent. */
  get count(): number {
    return this.#count;
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
    const { flags = FrameFlag.none, body, headers, reply } = content;
    const bytes = bytesFromFrame(kind, flags, this.#count, body);
    if (!this.#mux.publish(this.#peer, bytes, { headers, reply })) return false;
    this.#count += 1;
    this.#sentAt = Date.now();
    return true;
  }
}
