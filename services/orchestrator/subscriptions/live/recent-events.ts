import type { LiveUpdate } from "../../runs/watch/watch.ts";
import type { BufferedUpdate } from "./update-buffer.ts";

/** How much of a run is held for watchers that fell behind, once for all of them. */
const maxHeldBytes = 512 * 1_024;

export type RecentEvents = ReturnType<typeof createRecentEvents>;

/** The stored events since a watcher fell behind, without a gap: watchers continue from here and do not read the log. */
export function createRecentEvents() {
  let held: BufferedUpdate[] = [];
  let heldBytes = 0;

  function clear(): void {
    held = [];
    heldBytes = 0;
  }

  function hold(bufferedUpdate: BufferedUpdate): void {
    const sequence = sequenceOf(bufferedUpdate);
    if (sequence === undefined) return;
    const last = held.at(-1);
    if (last !== undefined && sequence !== (sequenceOf(last) ?? 0) + 1) clear();
    held.push(bufferedUpdate);
    heldBytes += bufferedUpdate.bytes;
    while (heldBytes > maxHeldBytes && held.length > 1) heldBytes -= held.shift()?.bytes ?? 0;
  }

  return {
    clear,
    isEmpty() {
      return held.length === 0;
    },
    take(bufferedUpdates: readonly BufferedUpdate[]): void {
      for (const bufferedUpdate of bufferedUpdates) hold(bufferedUpdate);
    },
    /** From that event on; undefined when some of them are not held. */
    since(sequence: number): LiveUpdate[] | undefined {
      const first = held[0] && sequenceOf(held[0]);
      if (first === undefined || sequence < first) return undefined;
      return held.slice(sequence - first).map(({ update }) => update);
    },
  };
}

/** Of a stored event whose position is known. */
function sequenceOf({ update: { update, position } }: BufferedUpdate): number | undefined {
  return update.update.case === "event" && position !== undefined ? update.update.value.sequence : undefined;
}
