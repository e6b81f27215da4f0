import type { ConnectError } from "@connectrpc/connect";
import { Assembly, type AssemblyRoom } from "../../../handling/messages/assembly.ts";
import type { Credit } from "../../frame/frame.ts";
import { PartAssembler } from "../../frame/parts.ts";
import type { ReceiveWindow } from "../credit.ts";

type Queued = { message: Uint8Array; uncredited: number; held: number };
type Ending = { kind: "open" } | { kind: "ended" } | { kind: "failed"; error: ConnectError };

export interface Holding {
  readonly room: AssemblyRoom;
  readonly sender: () => string;
  /** Whether a message that was taken counts until the channel is closed. */
  readonly holdsTaken: boolean;
}

/** The messages that have come in on a channel, until its reader takes them. */
export class IncomingMessages {
  readonly #window: ReceiveWindow;
  readonly #grant: (credit: Credit) => void;
  readonly #assembler = new PartAssembler();
  readonly #assembly: Assembly;
  readonly #holdsTaken: boolean;
  readonly #queue: Queued[] = [];
  /** What has come of the message that is being put together and is not yet credited. */
  #partialBytes = 0;
  #ending: Ending = { kind: "open" };
  #reader: PromiseWithResolvers<void> | undefined;

  /** `grant` sends credit to the peer. */
  constructor(window: ReceiveWindow, grant: (credit: Credit) => void, { holdsTaken, ...holding }: Holding) {
    this.#window = window;
    this.#grant = grant;
    this.#holdsTaken = holdsTaken;
    this.#assembly = new Assembly(holding, () => this.#queue.length === 0 && this.#creditParts());
  }

  /** How long the message that comes in has been waiting for room. */
  waitedMs(now: number): number {
    return this.#assembly.waitedMs(now);
  }

  /** The call is over: what was held for it is given back. */
  close(): void {
    this.#assembly.close();
  }

  /** Nothing more may come. */
  get isEnded(): boolean {
    return this.#ending.kind !== "open";
  }

  /** Parts of a message have come, and its last has not. */
  get isWithinMessage(): boolean {
    return this.#assembler.isWithin;
  }

  /** Takes a first part that came without credit. */
  pushOpening(part: Uint8Array): void {
    this.#assembler.push(part, true);
  }

  /** Takes what came in a frame; throws when the message grows too big. False when the peer had no credit for it. */
  push(part: Uint8Array, hasMore: boolean): boolean {
    if (!this.#window.arrived(part.length, hasMore ? 0 : 1)) return false;
    this.#partialBytes += part.length;
    const mayGrow = this.#assembly.grew(part.length);
    const message = this.#assembler.push(part, hasMore);
    if (message) {
      this.#queue.push({ message, uncredited: this.#partialBytes, held: this.#assembly.whole() });
      this.#partialBytes = 0;
      this.#wakeReader();
    } else if (this.#queue.length === 0 && mayGrow) this.#creditParts();
    return true;
  }

  /** The next message; undefined at the end; throws when the call has failed. */
  async take(): Promise<Uint8Array | undefined> {
    for (;;) {
      const queued = this.#queue.shift();
      if (queued) return this.#taken(queued);
      if (this.#ending.kind === "failed") throw this.#ending.error;
      if (this.#ending.kind === "ended") return undefined;
      this.#reader ??= Promise.withResolvers<void>();
      await this.#reader.promise;
    }
  }

  /** Nothing more comes; what is here is still handed out, and then the error, if there is one. */
  end(error?: ConnectError): void {
    if (this.#ending.kind === "open") this.#ending = error ? { kind: "failed", error } : { kind: "ended" };
    this.#window.close();
    this.#wakeReader();
  }

  /** Forgets what nobody will read. */
  drop(): void {
    this.#queue.length = 0;
  }

  #taken(queued: Queued): Uint8Array {
    this.#window.consumed(queued.uncredited, 1);
    if (!this.#holdsTaken) this.#assembly.taken(queued.held);
    if (this.#queue.length === 0 && this.#partialBytes > 0 && this.#assembly.grew(0)) this.#creditParts();
    else this.#grantMore();
    return queued.message;
  }

  #creditParts(): void {
    this.#window.consumed(this.#partialBytes, 0); // channel-4 of channel.ts
    this.#partialBytes = 0;
    this.#grantMore();
  }

  #grantMore(): void {
    if (this.#ending.kind !== "open") return;
    const credit = this.#window.grant();
    if (credit) this.#grant(credit);
  }

  #wakeReader(): void {
    this.#reader?.resolve();
    this.#reader = undefined;
  }
}
