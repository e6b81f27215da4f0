import { MAX_MESSAGE_BYTES } from "../frame/parts.ts";

/*
 * How much of large messages a connection holds at once: what a window holds is bounded by credit, but one message may be sixty
 * times as large, and so may be that of each call.
 *
 * M1  A message that grows beyond `SMALL_BYTES` waits, uncredited, until there is room for the largest that there may be: one that
 *     has begun always ends. They get room in the order of their asking.
 * M2  When it is whole, it holds what it has. A request that a handler has taken is held until the call is over, since what is made
 *     of it is larger than it was.
 */

/** What a message may have without asking: as much as a window. */
export const SMALL_BYTES = 1024 * 1024;
/** How long a message waits for room before its call is refused. */
export const ROOM_PATIENCE_MS = 30_000;

const LIMIT_BYTES = 4 * MAX_MESSAGE_BYTES;

/** The room of the large messages of one direction of a connection. */
export class AssemblyRoom {
  readonly limitBytes: number;
  readonly #waiting = new Set<() => void>();
  #heldBytes = 0;

  constructor(limitBytes = LIMIT_BYTES) {
    this.limitBytes = limitBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** M1; `onRoom` is called when there is room, perhaps at once. Gives what ends the waiting. */
  ask(onRoom: () => void): () => void {
    const waiting = () => onRoom();
    this.#waiting.add(waiting);
    this.#giveRoom();
    return () => void this.#waiting.delete(waiting);
  }

  giveBack(bytes: number): void {
    this.#heldBytes -= bytes;
    this.#giveRoom();
  }

  #giveRoom(): void {
    for (const waiting of this.#waiting) {
      if (this.#heldBytes + MAX_MESSAGE_BYTES > this.limitBytes) return;
      this.#heldBytes += MAX_MESSAGE_BYTES;
      this.#waiting.delete(waiting);
      waiting();
    }
  }
}

type Standing = "small" | "waiting" | "has room";

/** The large messages of one channel. */
export class Assembly {
  readonly #room: AssemblyRoom;
  readonly #onRoom: () => void;
  #standing: Standing = "small";
  #waitsSinceMs = 0;
  #bytes = 0;
  #heldBytes = 0;
  #stopWaiting = () => {};

  constructor(room: AssemblyRoom, onRoom: () => void) {
    this.#room = room;
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

  /** M2; gives what the message holds until it is taken or the call is over. */
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
    this.#stopWaiting = this.#room.ask(() => {
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
    this.#room.giveBack(given);
  }
}
