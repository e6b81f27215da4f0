import type { CallRecord } from "../records/call-record.ts";

/** Who watches is known by interest, whichever router holds the watcher. Errors mean that it cannot be told at the moment. */
export interface Presence {
  /** Whether some router holds a watcher of the tool. */
  isWatched(tool: string, signal: AbortSignal): Promise<boolean>;
  /** Whether some router holds this watcher. */
  isWatching(watcher: string, signal: AbortSignal): Promise<boolean>;
  /** Whether some router holds a watcher of the tool that watches on behalf of the principal. */
  isWatchedBy(principal: string, tool: string, signal: AbortSignal): Promise<boolean>;
  /** Says that a watcher is here; `onReplaced` that it came back elsewhere, and this stream is its old one. */
  show(watcher: WatcherFacts, onReplaced: () => void): Disposable;
}

export interface WatcherFacts {
  /** Who watches: the same for a stream that replaces a broken one. */
  token: string;
  principal: string;
  tools: readonly string[];
}

/**
 * How calls come to the routers that hold a watcher of their tool: straight, or by a queue in which they wait. What stands there
 * is handed to one router at a time.
 */
export interface CallQueue {
  /**
   * Hands a call that was just recorded straight to a router that has a watcher with room for it. When nobody takes it, it is
   * offered instead, soon, or by the duty of its record; false when it cannot be handed, and has to be offered at once.
   */
  deliver(record: CallRecord): boolean;
  /**
   * The call stands in its tool's queue when this resolves; once, however often it is offered. One that may have been in other
   * hands before is read by whoever gets it.
   */
  enqueue(record: CallRecord, standing: "first" | "again"): Promise<void>;
  /** Whether it stands in its tool's queue, also while a router has it from there. */
  isQueued(record: CallRecord): Promise<boolean>;
  /** Takes it out of the queue. */
  remove(record: CallRecord): Promise<void>;
  /** This router takes so many calls of the tool at the moment; they come to whoever opened the queues. */
  demand(tool: string, count: number): void;
  /** Nobody here watches the tool any more. */
  stop(tool: string): void;
}

/** A call in this router's hands until it says what became of it. */
export interface QueuedCall {
  readonly record: CallRecord;
  /** Whether it stood there a while, or was in other hands before: then the record may have moved on. */
  readonly isOld: boolean;
  /** The call needs no further offer. */
  ack(): void;
  /** Somebody else may have it. */
  release(): void;
}
