import type { ConnectError } from "@connectrpc/connect";
import { connectError } from "../../../failure/connect.ts";

/*
 * How much of large messages a connection to NATS, or an HTTP server, holds at once: what a window holds is bounded by credit, but
 * one message may be sixty times as large, and so may be that of each call.
 *
 * assembly-1  A message that grows beyond `SMALL_BYTES` waits, uncredited or unread, until there is room for the largest that there may be:
 *     one that has begun always ends. They get room in the order of their asking, those of whoever holds least first.
 * assembly-2  When it is whole, it holds what it has. A request that a handler has taken is held until the call is over, since what is made
 *     of it is larger than it was.
 * assembly-3  Whoever holds some already leaves room for one message of somebody else: no sender has all of it.
 */

/** The largest message that travels, in either direction. */
export const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
/** What a message may have without asking: as much as a window. */
const SMALL_BYTES = 1024 * 1024;
/** How long a message waits for room before its call is refused, on NATS and on HTTP: twelve of 60 MB take 80 s on two busy processors. */
export const ROOM_PATIENCE_MS = 120_000;

const LIMIT_BYTES = 4 * MAX_MESSAGE_BYTES;

/** The room of the large messages of one direction of a connection. */
export class AssemblyRoom {
  readonly limitBytes: number;
  readonly #waiting = new Set<Waiting>();
  readonly #heldBySender = new Map<string, number>();
  #heldBytes = 0;

  constructor(limitBytes = LIMIT_BYTES) {
    this.limitBytes = limitBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** assembly-1; `onRoom` is called when there is room, perhaps at once. Gives what ends the waiting. */
  ask(sender: string, onRoom: () => void): () => void {
    const waiting = { sender, onRoom };
    this.#waiting.add(waiting);
    this.#giveRoom();
    return () => void this.#waiting.delete(waiting);
  }

  giveBack(sender: string, bytes: number): void {
    this.#count(sender, -bytes);
    this.#giveRoom();
  }

  #giveRoom(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      this.#waiting.delete(next);
      this.#count(next.sender, MAX_MESSAGE_BYTES);
      next.onRoom();
    }
  }

  /** The first of those who hold least, if there is room for it. */
  #next(): Waiting | undefined {
    const held = ({ sender }: Waiting) => this.#heldBySender.get(sender) ?? 0;
    let next: Waiting | undefined;
    for (const waiting of this.#waiting) if (next === undefined || held(waiting) < held(next)) next = waiting;
    if (next === undefined) return undefined;
    const leftToOthers = held(next) > 0 ? MAX_MESSAGE_BYTES : 0; // assembly-3
    return this.#heldBytes + MAX_MESSAGE_BYTES + leftToOthers > this.limitBytes ? undefined : next;
  }

  #count(sender: string, bytes: number): void {
    this.#heldBytes += bytes;
    const held = (this.#heldBySender.get(sender) ?? 0) + bytes;
    if (held === 0) this.#heldBySender.delete(sender);
    else this.#heldBySender.set(sender, held);
  }
}

interface Waiting {
  readonly sender: string;
  readonly onRoom: () => void;
}

type Standing = "small" | "waiting" | "has room";

/** Why a message that waited for room is refused. */
export function noRoom(waitedMs: number): ConnectError {
  const message = `large messages of other calls hold all room for ${waitedMs / 1_000} s: send fewer at once, or smaller ones`;
  return connectError("resource_exhausted", message, { reason: "CONNECTION_FULL" });
}

/** The large messages of one channel, or of one request. */
export class Assembly {
  readonly #room: AssemblyRoom;
  readonly #senderOf: () => string;
  readonly #onRoom: () => void;
  #sender = "";
  #standing: Standing = "small";
  #waitsSinceMs = 0;
  #bytes = 0;
  #heldBytes = 0;
  #stopWaiting = () => {};

  /** `sender` is asked for once there is something large. */
  constructor({ room, sender }: { room: AssemblyRoom; sender: () => string }, onRoom: () => void) {
    this.#room = room;
    this.#senderOf = sender;
    this.#onRoom = onRoom;
  }

  /** How long the message has been waiting for room. */
  waitedMs(now: number): number {
    return this.#standing === "waiting" ? now - this.#waitsSinceMs : 0;
  }

  /** A part came; false when no more of the message is to be credited now. */
  grew(bytes: number): boolean {
    this.#bytes += bytes;
    if (this.#standing === "small" && this.#bytes > SMALL_BYTES) this.#ask();
    return this.#standing !== "waiting";
  }

  /** assembly-2; gives what the message holds until it is taken or the call is over. */
  whole(): number {
    const held = this.#standing === "has room" ? this.#bytes : 0;
    this.#stopWaiting();
    if (this.#standing === "has room") this.#giveBack(MAX_MESSAGE_BYTES - held);
    this.#standing = "small";
    this.#bytes = 0;
    return held;
  }

  taken(held: number): void {
    this.#giveBack(held);
  }

  /** Nothing more comes, and nothing is held. */
  close(): void {
    this.#stopWaiting();
    this.#giveBack(this.#heldBytes);
    this.#standing = "small";
  }

  #ask(): void {
    this.#standing = "waiting";
    this.#waitsSinceMs = performance.now();
    let isAsking = true;
    this.#sender = this.#senderOf();
    this.#stopWaiting = this.#room.ask(this.#sender, () => {
      this.#standing = "has room";
      this.#heldBytes += MAX_MESSAGE_BYTES;
      if (!isAsking) this.#onRoom();
    });
    isAsking = false;
  }

  #giveBack(bytes: number): void {
    const given = Math.min(bytes, this.#heldBytes); // what was closed holds nothing any more
    if (given === 0) return;
    this.#heldBytes -= given;
    this.#room.giveBack(this.#sender, given);
  }
}
