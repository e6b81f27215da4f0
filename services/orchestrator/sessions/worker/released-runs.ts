import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import type { FoldedRun } from "../../log/state/fold.ts";

/** So many are remembered; one that is forgotten is released once more, which does nothing. */
const mostRemembered = 4_096;

/** Runs that brought servers are released once by this process, when it finds that they have ended. */
export function createReleasedRuns(release: (run: FoldedRun) => Promise<void>) {
  const released = new BoundedMap<string, true>(mostRemembered);
  return (run: FoldedRun): Promise<void> | undefined => {
    const isOver = (run.accepted.options?.mcpServers.length ?? 0) === 0 || released.has(run.runId);
    if (isOver) return undefined;
    released.set(run.runId, true);
    return release(run);
  };
}
