import type { Stored } from "#runtime/bus/buckets/bucket.ts";
import { openPeriodic } from "#runtime/lifecycle/background.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { isSettled } from "../failures.ts";
import type { SessionChanges } from "../session-changes.ts";
import type { SessionRecord } from "../session-record.ts";
import type { Switching } from "./switching.ts";

export interface TakeoverParts {
  changes: SessionChanges;
  switching: Pick<Switching, "takeOver">;
  routers: { readonly self: string; isAlive(router: string): boolean };
  clock: Clock;
}

const CHECK_MS = 500;

/** Takes over sessions whose switch was held by a router that died (switch-5 of steps.ts). */
export function openTakeover({ changes, switching, routers, clock }: TakeoverParts): AsyncDisposable {
  const underWay = new Map<string, Stored<SessionRecord>>();
  changes.subscribe((change) => {
    if (isSettled(change.value)) underWay.delete(change.key);
    else underWay.set(change.key, change);
  });

  async function takeOverOrphans(): Promise<void> {
    const orphans = [...underWay.values()].filter(
      ({ value: { holder } }) => holder === routers.self || !routers.isAlive(holder),
    );
    await Promise.allSettled(orphans.map((orphan) => switching.takeOver(orphan))); // checked again soon
  }

  return openPeriodic({ everyMs: CHECK_MS, work: takeOverOrphans, clock, onError: () => {} });
}
