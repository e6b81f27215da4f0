import type { Changes } from "#runtime/collections/changes.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";

const QUIET_MS = 100;
/** In a storm of changes, the first one after so long is the last one waited for. */
const MAX_WAIT_MS = 1_000;

/**
 * Does the work some time after a change: quiet first, but not for ever; one at a time; a change during the work is worth another
 * turn. Rejects with the signal's reason.
 */
export async function refreshAfter(changes: Changes, signal: AbortSignal, work: () => Promise<void>): Promise<never> {
  for (let change = changes.next(); ; ) {
    await unlessAborted(change.happened, signal);
    const latest = performance.now() + MAX_WAIT_MS;
    do change = changes.next();
    while (performance.now() < latest && (await comesWithin(QUIET_MS, unlessAborted(change.happened, signal))));
    await work();
  }
}
