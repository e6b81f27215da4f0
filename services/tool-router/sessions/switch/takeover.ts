import { openBackground } from "#runtime/lifecycle/background.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { Stored } from "../../catalogue/documents.ts";
import { isSettled } from "../failures.ts";
import type { SessionNews } from "../session-changes.ts";
import type { SessionRecord } from "../session-record.ts";
import type { Switching } from "./switching.ts";

export interface CustodyParts {
  news: SessionNews;
  switching: Pick<Switching, "adopt">;
  fleet: { readonly self: string; isAlive(router: string): boolean };
  clock: Clock;
}

const LOOK_MS = 500;

/** Minds the sessions that are on their way: one whose router is gone is taken over here (S5 of steps.ts). */
export function openCustody({ news, switching, fleet, clock }: CustodyParts): AsyncDisposable {
  const underWay = new Map<string, Stored<SessionRecord>>();
  news.mind((told) => {
    if (isSettled(told.value)) underWay.delete(told.key);
    else underWay.set(told.key, told);
  });

  async function look(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await clock.delay(LOOK_MS, signal).catch(() => {}); // closing: the loop's condition sees it
      if (signal.aborted) return;
      const orphans = [...underWay.values()].filter(
        ({ value: { holder } }) => holder === fleet.self || !fleet.isAlive(holder),
      );
      await Promise.allSettled(orphans.map((orphan) => switching.adopt(orphan))); // looked at again soon
    }
  }

  return openBackground(look);
}
