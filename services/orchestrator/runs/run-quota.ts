import type { Quota } from "#runtime/bus/quota/quota.ts";
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

/** `stored` tells who has its share of what all runs take. */
export function createRunQuota(
  log: Pick<RunLog, "last">,
  limit: number,
  stored: Pick<Quota, "requireRoom"> = { requireRoom: () => {} },
) {
  const runsByPrincipal = new Map<string, Set<string>>();
  const placesByPrincipal = new Map<string, Set<Disposable>>();

  const hasRoom = (principal: string) =>
    (runsByPrincipal.get(principal)?.size ?? 0) + (placesByPrincipal.get(principal)?.size ?? 0) < limit;

  function takePlace(principal: string): Disposable {
    const places = placesByPrincipal.get(principal) ?? new Set();
    const leave = () => places.delete(place) && places.size === 0 && placesByPrincipal.delete(principal);
    const place = { [Symbol.dispose]: () => void leave() };
    placesByPrincipal.set(principal, places.add(place));
    return place;
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
    /** In the place that is held for it, if there is one. */
    add(principal: string, runId: string, place?: Disposable): void {
      const runs = runsByPrincipal.get(principal) ?? new Set();
      runsByPrincipal.set(principal, runs.add(runId));
      place?.[Symbol.dispose]();
    },
    /** The place of a run that is being created, until it is disposed. Refuses a principal that has its share. */
    async requireRoom(principal: string): Promise<Disposable> {
      stored.requireRoom(principal);
      if (hasRoom(principal)) return takePlace(principal);
      await forgetEnded(runsByPrincipal.get(principal) ?? new Set());
      if (hasRoom(principal)) return takePlace(principal);
      return refuseShare(principal, { of: "this orchestrator", share: "runs in flight", limit, retryMs: RETRY_MS });
    },
  };
}
