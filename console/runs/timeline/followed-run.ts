import { Code, ConnectError } from "@connectrpc/connect";
import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { RunService, type WatchRunResponse } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { createPlace } from "../../../sdk/typescript/client/runs/place.ts";
import { clientOf } from "../../suite/connection.ts";
import type { Followed } from "../../suite/live.ts";
import { type Timeline, TimelineReader } from "./timeline.ts";

/** A run as it happens, with all its events so far. */
export interface FollowedRun extends Followed<WatchRunResponse> {
  readonly events: readonly RunEvent[];
  readonly timeline: Timeline;
  /** How many deltas came, of all turns. */
  readonly deltaCount: number;
}

export function followRun(runId: string): FollowedRun {
  const events: RunEvent[] = [];
  const reader = new TimelineReader();
  const place = createPlace();
  let deltaCount = 0;
  return {
    events,
    timeline: reader.timeline,
    get deltaCount() {
      return deltaCount;
    },
    async *open(signal) {
      if (place.hasEnded) return;
      yield* clientOf(RunService).watchRun({ runId, includeDeltas: true, ...place.next() }, { signal });
      if (!place.hasEnded) throw new ConnectError("the stream ended before the run", Code.Unavailable);
    },
    take({ update }) {
      place.pass(update);
      if (update.case === "event") {
        events.push(update.value);
        reader.event(update.value);
      } else if (update.case === "delta") {
        deltaCount += 1;
        reader.delta(update.value);
      } else if (update.case === "replaced") reader.replaced(update.value);
    },
  };
}

/** The run as it was after an event. */
export function timelineUpTo(events: readonly RunEvent[], sequence: number): Timeline {
  const reader = new TimelineReader();
  for (const event of events) if (event.sequence <= sequence) reader.event(event);
  return reader.timeline;
}
