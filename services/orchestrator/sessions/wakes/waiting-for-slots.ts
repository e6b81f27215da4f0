import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import { backoffMs } from "#runtime/time/retry/backoff.ts";
import type { Slots } from "./slots.ts";
import type { Wake } from "./wake.ts";
import type { WakeOutcome } from "./wake-outcome.ts";

const waits = { initialMs: 500, maxMs: 15_000 };

/** Of more wake-ups than these, the runs are read again when they come. */
const maxRemembered = 20_000;

/** Wake-ups that were put back here since too many runs of their principal wait already: when they come, it may still be so. */
export function createWaitingForSlots(slots: Pick<Slots, "isFullFor">) {
  const putBackById = new BoundedMap<number, { principal: string; deliveryCount: number }>(maxRemembered);

  /** The longer it has waited, the longer again, so that thousands that wait cost little. */
  function putBack({ id, deliveryCount }: Wake, principal: string): WakeOutcome {
    putBackById.set(id, { principal, deliveryCount });
    return { kind: "later", delayMs: backoffMs(deliveryCount, waits) };
  }

  return {
    putBack,
    /** Undefined for what is to be looked at: another process may have had the wake-up since, and begun its run. */
    find(wake: Wake): WakeOutcome | undefined {
      const last = putBackById.get(wake.id);
      putBackById.delete(wake.id);
      if (last === undefined || last.deliveryCount + 1 !== wake.deliveryCount) return undefined;
      return slots.isFullFor(last.principal) ? putBack(wake, last.principal) : undefined;
    },
  };
}
