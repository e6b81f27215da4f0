import type { Crowding } from "#runtime/bus/room/crowding.ts";
import { refuseShare } from "#runtime/failure/share.ts";
import type { RunLog } from "../log/journal.ts";

/**
 * SEC-6: how many runs of a principal, accepted by this process, have not ended. They are counted when they are accepted; whether one has
 * ended is asked of its log, only once a principal seems to have its share.
 */
export interface RunQuota {
  /** In one of the places that are held for its principal, if there is one. */
  add(principal: string, runId: string): void;
  /** The place of a run that is being created, until it is disposed. Refuses a principal that has its share. */
  requireRoom(principal: string): Promise<Disposable>;
}

/** So many at most are asked for each new run, so that no refusal costs much. */
const ASKED = 32;
const RETRY_MS = 5_000;

/** `stored` tells who has its share of what all runs take. */
export function createRunQuota(
  log: Pick<RunLog, "last">,
  limit: number,
  stored: Pick<Crowding, "requireRoom"> = { requireRoom: () => {} },
): RunQuota {
  const runsByPrincipal = new Map<string, Set<string>>();
  const placesByPrincipal = new Map<string, Set<Disposable>>();

  const hasRoom = (principal: string) =>
    (runsByPrincipal.get(principal)?.size ?? 0) + (placesByPrincipal.get(principal)?.size ?? 0) < limit;

  function takePlace(principal: string): Disposable {
    const place = { [Symbol.dispose]: () => leave(principal, place) };
    placesByPrincipal.set(principal, (placesByPrincipal.get(principal) ?? new Set()).add(place));
    return place;
  }

  /** All places of a principal are alike: a run takes any of them. */
  function leave(principal: string, place: Disposable | undefined): void {
    const places = placesByPrincipal.get(principal);
    if (place === undefined || places === undefined) return;
    places.delete(place);
    if (places.size === 0) placesByPrincipal.delete(principal);
  }

  /** The oldest first, in turns: who still goes on is asked again after all others. */
  async function forgetEnded(runs: Set<string>): Promise<void> {
    const asked = [...runs.values().take(ASKED)];
    const lasts = await Promise.all(asked.map((runId) => log.last(runId)));
    for (const [index, runId] of asked.entries()) {
      const last = lasts[index]?.event.event.case; // none once retention has removed the run
      runs.delete(runId);
      if (last !== undefined && last !== "ended") runs.add(runId);
    }
  }

  return {
    add(principal, runId) {
      const runs = runsByPrincipal.get(principal) ?? new Set();
      runsByPrincipal.set(principal, runs.add(runId));
      leave(principal, placesByPrincipal.get(principal)?.values().next().value);
    },
    async requireRoom(principal) {
      stored.requireRoom(principal);
      if (hasRoom(principal)) return takePlace(principal);
      await forgetEnded(runsByPrincipal.get(principal) ?? new Set());
      if (hasRoom(principal)) return takePlace(principal);
      return refuseShare(principal, { of: "this orchestrator", share: "runs in flight", limit, retryMs: RETRY_MS });
    },
  };
}
