import type { RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";

/** An error that no further try mends: the run ends with it. Its message is written for the client of the run. */
export class RunFailed extends Error {
  readonly endReason: RunEndReason;

  constructor(endReason: RunEndReason, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "RunFailed";
    this.endReason = endReason;
  }
}
