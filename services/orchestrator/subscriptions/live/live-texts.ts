import { create } from "@bufbuild/protobuf";
import type { RunDelta } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type WatchRunResponse, WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import type { DeltaWriter } from "../../loop/streaming/deltas.ts";
import { publishUpdate } from "../streams/stream-run-log.ts";

/** What the models of this process write at the moment, for the watchers of their runs. */
export function createLiveTexts(bus: Bus) {
  const deltasByRunId = new Map<string, DeltaWriter>();
  const publish = (runId: string, update: Exclude<WatchRunResponse["update"], { case: undefined }>) =>
    publishUpdate(bus, runId, create(WatchRunResponseSchema, { update }));
  return {
    publishDelta: (runId: string, value: RunDelta) => publish(runId, { case: "delta", value }),
    /** Undefined once no model writes for the run. */
    setDeltas(runId: string, deltas: DeltaWriter | undefined): void {
      if (deltas === undefined) deltasByRunId.delete(runId);
      else deltasByRunId.set(runId, deltas);
    },
    /** The text so far, if this process works on the run. */
    publishSnapshot(runId: string): void {
      const value = deltasByRunId.get(runId)?.snapshot();
      if (value !== undefined) publish(runId, { case: "replaced", value });
    },
  };
}
