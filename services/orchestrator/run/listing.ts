import type { ListRunsRequest } from "#gen/toolbus/orchestrator/v1/run_service_pb.ts";
import type { Run } from "#gen/toolbus/run/v1/run_pb.ts";
import { entriesBackward, type SessionQueues } from "../session/queue.ts";
import { foldLog } from "./fold.ts";
import type { RunLog } from "./journal.ts";
import { runFromState } from "./view.ts";

export interface ListingOptions {
  readonly log: RunLog;
  readonly queues: SessionQueues;
  /** The ids of all runs, in any order. */
  readonly runIds: () => Promise<string[]>;
}

const defaultPageSize = 100;

/** Runs without their items, latest first. The token of a page names the run after which it goes on. */
export async function listRuns(
  options: ListingOptions,
  { sessionId, statuses, pageSize, pageToken }: ListRunsRequest,
): Promise<{ runs: Run[]; nextPageToken: string }> {
  const limit = pageSize || defaultPageSize;
  const runs: Run[] = [];
  let hasBegun = pageToken === "";
  for await (const runId of sessionId === "" ? latestFirst(options) : runsOfSession(options, sessionId)) {
    if (!hasBegun) {
      hasBegun = runId === pageToken;
      continue;
    }
    const state = foldLog((await options.log.read(runId, 0)).map(({ event }) => event));
    if (state === undefined) continue;
    const run = runFromState(state);
    if (statuses.length > 0 && !statuses.includes(run.status)) continue;
    run.items = [];
    runs.push(run);
    if (runs.length === limit) return { runs, nextPageToken: runId };
  }
  return { runs, nextPageToken: "" };
}

async function* latestFirst({ runIds }: ListingOptions): AsyncGenerator<string> {
  yield* (await runIds()).sort().reverse(); // ids sort by the time of their making
}

async function* runsOfSession({ queues }: ListingOptions, sessionId: string): AsyncGenerator<string> {
  for await (const { queued } of entriesBackward(queues, await queues.last(sessionId))) yield queued.runId;
}
