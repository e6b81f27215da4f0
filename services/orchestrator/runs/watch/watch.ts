/**
 * Follows a run on any replica: what is stored, then what comes.
 *
 * watch-1  Stored events are shown once each and in order. The live subject brings them after they are stored; one that skips
 *     something is a gap, and the log fills it.
 * watch-2  The subscription stands before the log is read, so that nothing falls between the two.
 * watch-3  News can be lost with the server that carried them: after a silence, and after a return, the log is read.
 * watch-4  Nothing is shown after the terminal event, and there is only one in a log.
 * watch-5  A log begins with whose it is: whoever is not the owner of the session is refused there, before anything is shown.
 * watch-6  What the log has of a turn that is not committed is shown to whoever lacks it; the deltas that follow join it, or the
 *     gap between the two is filled by the process that works on the run.
 * watch-7  A stream that ends well has told all up to the terminal event from where it began. To ask for what follows the last event,
 *     or for what comes from now on, of a run that has ended, is to want nothing that is left; what lies beyond the next event is
 *     refused, whether or not the run goes on.
 * watch-8  Who was shown something of a turn in the middle of which the run ends is told, before the end, what the record has of it.
 * watch-9  What came live is shown as it came: it is one message for all watchers, and its bytes are known.
 * watch-10 Who does not read is told no deltas meanwhile: when it reads again, it is shown the events that came and the text so far.
 * watch-11 What is missing in the log between two events, or before the first, is told as a gap before what follows it. Without its
 *     first event a log does not say whose it is: then it is shown to services alone.
 */

import type { WatchRunResponse } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { RunLog } from "../../log/journal.ts";
import { notFound } from "../existing-run.ts";
import { type WatchRequest, WatchView } from "./watch-view.ts";

/** An update that came live; the position is that of a stored event, the instance that of a claim. */
export interface LiveUpdate {
  readonly update: WatchRunResponse;
  readonly position?: number | undefined;
  readonly instance?: string | undefined;
}

export interface LiveSubscription extends AsyncDisposable {
  /**
   * The next update; undefined after a silence, and when updates may have been lost; `behind` when more came than is held for
   * one that does not read. Rejects once the signal has aborted.
   */
  next(): Promise<LiveUpdate | "behind" | undefined>;
  /** The stored events that came from that one on; undefined when they are to be read in the log. */
  since(sequence: number): LiveUpdate[] | undefined;
}

export interface LiveUpdates {
  /** Resolves when the subscription stands. */
  subscribe(runId: string, signal: AbortSignal): Promise<LiveSubscription>;
}

export interface WatchOptions {
  readonly log: RunLog;
  readonly live: LiveUpdates;
  /** Asks the process that works on the run to tell the text so far. */
  readonly requestSnapshot: (instance: string, runId: string) => void;
}

export async function* watchRun(
  options: WatchOptions,
  request: WatchRequest,
  signal: AbortSignal,
): AsyncGenerator<WatchRunResponse> {
  const { log, live, requestSnapshot } = options;
  const { runId, includeDeltas } = request;
  await using subscription = await live.subscribe(runId, signal); // watch-2
  const view = new WatchView(request);
  const ask = () => {
    if (includeDeltas && view.holder !== undefined) requestSnapshot(view.holder, runId);
  };
  let position = 0;
  let mustRead = true;
  for (;;) {
    if (mustRead) {
      const part = await log.read(runId, position);
      position = part.position;
      for (const record of part.records) for (const shown of view.event(record)) yield shown;
      if (position === 0) notFound(runId);
      yield* view.begin(); // watch-7
      if (view.hasEnded) return; // watch-4
      yield* view.draft(); // watch-6
      ask();
    }
    const next = await subscription.next();
    const came = next === "behind" ? subscription.since(view.nextSequence) : next && [next]; // watch-10
    mustRead = came === undefined; // watch-3
    for (const { update: response, position: storedAt, instance = "" } of came ?? []) {
      const { update } = response;
      if (update.case === "event") {
        mustRead = update.value.sequence > view.nextSequence || storedAt === undefined; // watch-1
        if (mustRead || storedAt === undefined) break;
        for (const shown of view.event({ event: update.value, instance }, response)) yield shown;
        position = Math.max(position, storedAt);
        if (view.hasEnded) return; // watch-4
        yield* view.draft(); // watch-6
      } else if (includeDeltas && (update.case === "delta" || update.case === "replaced")) {
        const step = view.live(update, response);
        for (const shown of step.shown) yield shown;
        if (step.isGap) ask();
      }
    }
    if (next === "behind" && !mustRead) ask();
  }
}
