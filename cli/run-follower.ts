import { Code, ConnectError } from "@connectrpc/connect";
import { RunService } from "#gen/toolbus/orchestrator/v1/run_service_pb.ts";
import { RunStatus } from "#gen/toolbus/run/v1/run_pb.ts";
import { createBackoff } from "#runtime/time/backoff.ts";
import { delay } from "#runtime/time/delay.ts";
import type { Connection } from "./connection.ts";
import type { RunPrinter } from "./run-printer.ts";

export interface FollowOptions {
  printer: RunPrinter;
  fromSequence?: number;
  patienceMs?: number;
  signal?: AbortSignal;
  /** Goes on while the run waits for outputs, which somebody else gives. */
  staysWhileParked?: boolean;
}

/**
 * Follows a run to its end and tells how it ended; `REQUIRES_ACTION` when it waits for outputs and nobody stays for them. A
 * stream that breaks is opened again behind the last stored event, until that fails for `patienceMs`.
 */
export async function followRun(connection: Connection, runId: string, options: FollowOptions): Promise<RunStatus> {
  const patienceMs = options.patienceMs ?? 15_000;
  const runs = connection.client(RunService);
  const backoff = createBackoff({ initialMs: 100, maxMs: 2_000 });
  let next = options.fromSequence ?? 0;
  let failingSince: number | undefined;
  let ended: RunStatus | undefined;
  for (;;) {
    // Leaving a stream does not end it: the other side learns of it by the signal.
    const leaving = new AbortController();
    const openedAt = Date.now();
    const leave = () => leaving.abort(options.signal?.reason);
    options.signal?.addEventListener("abort", leave, { once: true });
    try {
      const stream = runs.watchRun({ runId, fromSequence: next, includeDeltas: true }, { signal: leaving.signal });
      for await (const response of stream) {
        options.printer.show(response);
        failingSince = undefined;
        backoff.reset();
        const { update } = response;
        if (update.case !== "event") continue;
        next = update.value.sequence + 1;
        if (update.value.event.case === "ended") ended = update.value.event.value.status;
        if (update.value.event.case === "parked" && !options.staysWhileParked) return RunStatus.REQUIRES_ACTION;
      }
      if (ended === undefined) throw new ConnectError("the stream ended before the run", Code.Unavailable);
      return ended;
    } catch (error) {
      if (ended !== undefined) return ended;
      const isPassing = error instanceof ConnectError && error.code === Code.Unavailable;
      const hasStood = Date.now() - openedAt > patienceMs; // quiet, as that of a run that waits
      failingSince = hasStood ? Date.now() : (failingSince ?? Date.now());
      if (!isPassing || Date.now() - failingSince > patienceMs) throw error;
      await delay(backoff.next(), options.signal);
    } finally {
      options.signal?.removeEventListener("abort", leave);
      leave();
    }
  }
}
