/**
 * An event of a run takes at most the stream's largest message (1 MiB) less 16 KiB, which the run's end may need.
 *
 * A client's input over that is refused. A turn of the model over it fails the run (`turn_too_large`); the model's request
 * is aborted as soon as its text, thoughts and arguments together are over it. A call's result over it becomes an error.
 */

import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { Failure, refuse } from "#runtime/failure/failure.ts";

const reason = "MESSAGE_TOO_LARGE";

const words: Partial<Record<NonNullable<RunEvent["event"]["case"]>, string>> = {
  accepted: "the run's input with its options",
  turnCommitted: "the model's turn",
  callFinished: "the call's result",
};

/** The log of a run keeps one message an event, which has a largest size. */
export function refuseTooLargeEvent({ event }: Pick<RunEvent, "event">, bytes: number, limit: number): void {
  if (bytes <= limit) return;
  const what = words[event.case ?? "ended"] ?? `the event ${event.case}`;
  const metadata = { bytes: String(bytes), limit: String(limit) };
  refuse("invalid_argument", `${what} takes ${bytes} bytes, over the limit of ${limit}`, { reason, metadata });
}

export function isTooLarge(error: unknown): error is Failure {
  return error instanceof Failure && error.reason === reason;
}
