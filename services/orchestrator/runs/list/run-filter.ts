import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Run } from "#gen/toolbus/run/v1/run_pb.ts";
import type { ListRunsRequest } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import { runFromState, statusFromState } from "../../log/state/view.ts";

/** What is asked of runs, by who lists or follows them. */
export type AskedRuns = Pick<ListRunsRequest, "states" | "agent" | "tool" | "startTime" | "endTime">;

export interface RunFilter {
  readonly startMs: number;
  readonly endMs: number;
  /** Whether the run may pass at some time: what does not change about it passes. */
  concerns(state: FoldedRun): boolean;
  /** Whether it passes as it stands. */
  takes(state: FoldedRun): boolean;
}

export function filterFrom({ states, agent, tool, startTime, endTime }: AskedRuns): RunFilter {
  const startMs = startTime ? timestampMs(startTime) : Number.NEGATIVE_INFINITY;
  const endMs = endTime ? timestampMs(endTime) : Number.POSITIVE_INFINITY;
  const concerns = ({ accepted, acceptedAtMs }: FoldedRun) =>
    (agent === "" || accepted.agent === agent) && acceptedAtMs >= startMs && acceptedAtMs < endMs;
  return {
    startMs,
    endMs,
    concerns,
    takes: (state) =>
      concerns(state) &&
      (states.length === 0 || states.includes(statusFromState(state))) &&
      (tool === "" || state.turns.some(({ calls }) => calls.some(({ name }) => name === tool))),
  };
}

/** A run without its items and its draft. */
export function rowFrom(state: FoldedRun): Run {
  const run = runFromState(state);
  run.items = [];
  delete run.draft;
  return run;
}
