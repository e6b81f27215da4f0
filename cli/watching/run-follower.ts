import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { connectError } from "#runtime/failure/connect.ts";
import { placeAfterUpdate } from "#runtime/rpc/watching/log-update.ts";
import { resumed } from "#runtime/rpc/watching/resumed.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { Connection } from "../connection.ts";
import type { RunPrinter } from "../printing/run-printer.ts";

export interface FollowOptions {
  printer: RunPrinter;
  patienceMs?: number;
  signal?: AbortSignal;
  /** Goes on while the run waits for outputs, which somebody else gives. */
  staysWhileParked?: boolean;
}

/**
 * Follows a run to its end and tells how it ended; `REQUIRES_ACTION` when it waits for outputs and nobody stays for them. A
 * stream that breaks is opened again behind the last stored event, until that fails for `patienceMs`.
 */
export async function followRun(connection: Connection, runId: string, options: FollowOptions): Promise<RunState> {
  const { printer, patienceMs = 15_000, staysWhileParked = false } = options;
  const runs = connection.client(RunService);
  using leaving = openEnding(options.signal); // leaving a stream does not end it: the other side learns of it by the signal
  const { signal } = leaving;
  let fromSequence = 0n;
  let state: RunState = RunState.UNSPECIFIED;
  const hasEnded = () => state !== RunState.UNSPECIFIED;

  async function* open() {
    try {
      yield* runs.watchRun({ runId, fromSequence, includeDeltas: true }, { signal });
    } catch (error) {
      if (!hasEnded()) throw error;
    }
    if (!hasEnded()) throw connectError("unavailable", "the stream ended before the run", { reason: "STREAM_ENDED" });
  }

  try {
    for await (const response of resumed({ open, patienceMs, signal })) {
      printer.show(response);
      const { update } = response;
      fromSequence = placeAfterUpdate(update, fromSequence);
      if (update.case !== "event") continue;
      if (update.value.event.case === "ended") state = update.value.event.value.state;
      if (update.value.event.case === "parked" && !staysWhileParked) return RunState.REQUIRES_ACTION;
    }
    return state;
  } finally {
    leaving.end();
  }
}
