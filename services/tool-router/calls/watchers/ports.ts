import type { CallRecord } from "../records/record/call-record.ts";

/** Which watchers are connected, to any router. Rejects while that cannot be found out. */
export interface Presence {
  isWatched(tool: string, signal: AbortSignal): Promise<boolean>;
  /** Whether this watcher is connected. */
  isWatching(watcher: string, signal: AbortSignal): Promise<boolean>;
  /** Whether a watcher of the tool is connected that watches on behalf of the principal. */
  isWatchedBy(principal: string, tool: string, signal: AbortSignal): Promise<boolean>;
  /** Registers a watcher of this router. Calls `onReplaced` when the watcher has opened a newer stream, here or elsewhere. */
  show(watcher: WatcherFacts, onReplaced: () => void): Disposable;
}

export interface WatcherFacts {
  /** Identifies the watcher; a stream that replaces a broken one has the same token. */
  token: string;
  principal: string;
  tools: readonly string[];
}

/** Brings calls to the routers that have a watcher of their tool: directly, or through a work queue for each tool. */
export interface CallQueue {
  /**
   * Sends a call that was just recorded directly to a router that has a watcher with room for it. If no router accepts it, it is
   * enqueued, at the latest by its due work. Returns false if it cannot be sent; then the caller enqueues it.
   */
  deliver(record: CallRecord): boolean;
  /**
   * Puts the call into its tool's queue, if it is not there. With `again` another watcher may have held it before, so the router
   * that receives it reads its record first.
   */
  enqueue(record: CallRecord, standing: "first" | "again"): Promise<void>;
  /** Whether the call is in its tool's queue, or a router holds it from there. */
  isQueued(record: CallRecord): Promise<boolean>;
  remove(record: CallRecord): Promise<void>;
  /** The number of calls of the tool for which this router's watchers have room. */
  demand(tool: string, count: number): void;
  /** This router has no watcher of the tool any more. */
  stop(tool: string): void;
}

/** A call that this router holds until it acknowledges or releases it. */
export interface QueuedCall {
  readonly record: CallRecord;
  /** It waited for a while or was held before, so its record may have changed. */
  readonly isOld: boolean;
  /** The call leaves the queue. */
  ack(): void;
  /** The call may go to another watcher. */
  release(): void;
}
