import { type Run, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService, type WatchRunsResponse } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { firstOf } from "#runtime/rpc/paging/first-of.ts";
import { followRuns } from "../runs/followed-runs.ts";
import { goingOn } from "../runs/states.tsx";
import { clientOf } from "../suite/connection.ts";
import type { Followed } from "../suite/live.ts";

/** Runs of each kind that are counted. */
export const countedRuns = 1_000;

/** Failed runs that are held. */
const heldFailed = 100;

export interface FollowedOverview extends Followed<WatchRunsResponse> {
  readonly openRuns: ReadonlyMap<string, Run>;
  /** Latest last. */
  readonly failed: ReadonlyMap<string, Run>;
  readonly hasBegun: boolean;
}

/** The runs that go on, and those that failed last. */
export function followOverview(): FollowedOverview {
  const open = new Map<string, Run>();
  const failed = new Map<string, Run>();
  let hasBegun = false;

  function put(run: Run): void {
    remove(run.id);
    if (goingOn.includes(run.state)) open.set(run.id, run);
    if (run.state === RunState.FAILED) failed.set(run.id, run);
    const [oldest = ""] = failed.keys();
    if (failed.size > heldFailed) failed.delete(oldest);
  }

  function remove(runId: string): void {
    open.delete(runId);
    failed.delete(runId);
  }

  async function list(signal: AbortSignal): Promise<void> {
    const ask = (states: readonly RunState[], most: number) =>
      firstOf(most, async (page) => {
        const { runs: items, nextPageToken } = await clientOf(RunService).listRuns(
          { states: [...states], ...page },
          { signal },
        );
        return { items, nextPageToken };
      });
    const listed = await Promise.all([ask(goingOn, countedRuns), ask([RunState.FAILED], heldFailed)]);
    open.clear();
    failed.clear();
    for (const { items } of listed) for (const run of items.reverse()) put(run);
    hasBegun = true;
  }

  return {
    ...followRuns({}, { list, put, remove }),
    ...{ openRuns: open, failed },
    get hasBegun() {
      return hasBegun;
    },
  };
}
