import type { Quota } from "#runtime/bus/quota/quota.ts";
import { getOrInsertComputed } from "#runtime/collections/get-or-insert-computed.ts";
import { refuseShare } from "#runtime/failure/share.ts";
import type { RunLog } from "../log/journal.ts";

/**
 * SEC-6: how many runs of a principal, accepted by this process, have not ended. They are counted when they are accepted; whether one has
 * ended is asked of its log, only once a principal seems to have its share.
 */
export type RunQuota = ReturnType<typeof createRunQuota>;

/** So many at most are asked for each new run, so that no refusal costs much. */
const ASKED = 32;
const RETRY_MS = 5_000;

/** Of a run that is being created, until it is disposed; with `runId`, of one that was accepted, and keeps it. */
export interface Place extends Disposable {
  runId?: string;
}

/** `stored` tells who has its share of what all runs take. */
export function createRunQuota(
  log: Pick<RunLog, "last">,
  limit: number,
  stored: Pick<Quota, "requireRoom"> = { requireRoom: () => {} },
) {
  const placesByPrincipal = new Map<string, Set<Place>>();
  const placesOf = (principal: string) => getOrInsertComputed(placesByPrincipal, principal, () => new Set<Place>());

  function takePlace(places: Set<Place>): Place {
    const place: Place = { [Symbol.dispose]: () => void (place.runId ?? places.delete(place)) };
    places.add(place);
    return place;
  }

  /** The oldest first, in turns: who still goes on is asked again after all others. */
  async function forgetEnded(places: Set<Place>): Promise<void> {
    const asked = [...places].filter(({ runId }) => runId !== undefined).slice(0, ASKED);
    const lasts = await Promise.all(asked.map(({ runId = "" }) => log.last(runId)));
    for (const [index, place] of asked.entries()) {
      const last = lasts[index]?.event.event.case; // none once retention has removed the run
      places.delete(place);
      if (last !== undefined && last !== "ended") places.add(place);
    }
  }

  return {
    /** In the place that is held for it, if there is one. */
    add(principal: string, runId: string, place = takePlace(placesOf(principal))): void {
      place.runId = runId;
    },
    /** Refuses a principal that has its share. */
    async requireRoom(principal: string): Promise<Place> {
      stored.requireRoom(principal);
      const places = placesOf(principal);
      if (places.size >= limit) await forgetEnded(places);
      if (places.size < limit) return takePlace(places);
      return refuseShare(principal, { of: "this orchestrator", share: "runs in flight", limit, retryMs: RETRY_MS });
    },
  };
}
