import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";

/** A duration of the contract in milliseconds; undefined if it is absent. */
export function msFromDuration(duration: Duration | undefined): number | undefined {
  return duration && durationMs(duration);
}
