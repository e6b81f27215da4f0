import type { CallerDeclaration } from "#gen/toolbus/caller/v1/caller_pb.ts";
import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import type { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";

export type Declarations = ReturnType<typeof createDeclarations>;

/**
 * What callers declare, by session. `changes` tells of each session whose declaration was written or removed, by whichever instance.
 */
export function createDeclarations(bucket: Bucket<CallerDeclaration>, changes: KeyedListeners) {
  const read = async (sessionId: string) => (await bucket.read(sessionId))?.value;
  return {
    read,
    /** In place of what stood there; without tools it is removed. */
    async write(sessionId: string, declaration: CallerDeclaration): Promise<void> {
      if (declaration.tools.length === 0) await bucket.remove(sessionId);
      else await bucket.put(sessionId, declaration);
    },
    /** The declaration as it is and after each change, until the signal aborts. */
    async *follow(sessionId: string, signal: AbortSignal): AsyncGenerator<CallerDeclaration | undefined> {
      for (;;) {
        using change = changes.next(sessionId); // what changes while it is read is told after it
        yield await read(sessionId);
        try {
          await unlessAborted(change.happened, signal);
        } catch {
          return; // the signal aborted
        }
      }
    },
  };
}
