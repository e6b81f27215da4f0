import type { MessageInitShape } from "@bufbuild/protobuf";
import type { DeltaCursorSchema, WatchRunResponse } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { placeAfterUpdate } from "#runtime/rpc/watching/log-update.ts";

/** What happens in a run, in order: stored events, and the deltas between them. */
export type RunUpdate = WatchRunResponse["update"];

/** Where a reader of a run stands, to go on there when the stream breaks. */
export interface Place {
  readonly hasEnded: boolean;
  /** What to ask for. */
  next(): { fromSequence: bigint; afterDelta?: MessageInitShape<typeof DeltaCursorSchema> };
  pass(update: RunUpdate): void;
}

export function createPlace(): Place {
  let fromSequence = 0n;
  let afterDelta: MessageInitShape<typeof DeltaCursorSchema> | undefined;
  let hasEnded = false;
  return {
    get hasEnded() {
      return hasEnded;
    },
    next: () => ({ fromSequence, ...(afterDelta && { afterDelta }) }),
    pass(update) {
      if (update.case !== "start") fromSequence = placeAfterUpdate(update, fromSequence);
      if (update.case === "delta") {
        const { turn, attempt, index } = update.value;
        afterDelta = { turn, attempt, index };
      } else if (update.case === "replaced") {
        const { turn, attempt, deltaCount } = update.value;
        afterDelta = deltaCount === 0 ? undefined : { turn, attempt, index: deltaCount - 1 };
      } else if (update.case === "event") {
        if (update.value.event.case === "turnCommitted") afterDelta = undefined;
        if (update.value.event.case === "ended") hasEnded = true;
      }
    },
  };
}
