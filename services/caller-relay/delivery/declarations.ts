import type { CallerDeclaration } from "#gen/toolbus/caller/v1/caller_pb.ts";
import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { Changes } from "../streams/changes.ts";

/** What callers declare, by session. */
export interface Declarations {
  read(sessionId: string): Promise<CallerDeclaration | undefined>;
  /** In place of what stood there; without tools it is removed. */
  write(sessionId: string, declaration: CallerDeclaration): Promise<void>;
  /** The declaration as it is and after each change, until the signal aborts. */
  follow(sessionId: string, signal: AbortSignal): AsyncIterable<CallerDeclaration | undefined>;
}

/** `changes` tells of each session whose declaration was written or removed, by whichever instance. */
export function createDeclarations(bucket: Bucket<CallerDeclaration>, changes: Changes): Declarations {
  const read: Declarations["read"] = async (sessionId) => (await bucket.read(sessionId))?.value;
  return {
    read,
    async write(sessionId, declaration) {
      if (declaration.tools.length === 0) await bucket.remove(sessionId);
      else await bucket.put(sessionId, declaration);
    },
    async *follow(sessionId, signal) {
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
