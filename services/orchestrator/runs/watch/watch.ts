/**
 * Follows a run on any replica: stored events first, then live updates.
 *
 * watch-1   Each stored event is shown once, in order. The live subject brings an event after it is stored. If one is skipped, the log
 *     fills the gap.
 * watch-2   The watch subscribes before it reads the log, so that nothing falls between the two.
 * watch-3   Live updates can be lost with the server that carried them: after a silence, and after a reconnect, the log is read.
 * watch-4   The terminal event is the last one shown, and there is only one in a log.
 * watch-5   The first event of a log says whose run it is: anybody else is refused before anything is shown.
 * watch-6   The text that the log has of an uncommitted turn is shown to a watcher that lacks it. The next deltas join it, or the process
 *     that works on the run fills the gap.
 * watch-7   A stream that ends without an error has shown everything from its start to the terminal event. It may start right behind the
 *     last event of an ended run, which shows nothing more. A start further ahead is refused, whether or not the run goes on.
 * watch-8   If a run ends in the middle of a turn, a watcher that saw some of the turn gets the text that the log has of it, before the end.
 * watch-9   A live update is passed on unchanged: it is one message for all watchers, whose bytes are known.
 * watch-10  A watcher that does not read gets no deltas meanwhile. When it reads again, it gets the events that came, and the text so far.
 * watch-11  Events that are missing in the log are shown as a gap, before the event that follows them. If the first event is missing, the log
 *     does not say whose run it is: then it is shown to services only.
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

export interface LiveSubscription extends Disposable {
  /**
   * The next update; undefined after a silence, when updates may have been lost, and when more came than is held for a
   * watcher that does not read. Rejects once the signal has aborted.
   */
  next(): Promise<LiveUpdate | undefined>;
}

export interface LiveUpdates {
  /** Resolves when the subscription stands. */
  subscribe(runId: string, signal: AbortSignal): Promise<LiveSubscription>;
}

export interface WatchOptions {
  readonly log: RunLog;
  readonly live: LiveUpdates;
  /** Asks the process that works on the run to publish the text so far. */
  readonly requestSnapshot: (instance: string, runId: string) => void;
}

export async function* watchRun(
  options: WatchOptions,
  request: WatchRequest,
  signal: AbortSignal,
): AsyncGenerator<WatchRunResponse> {
  const { log, live, requestSnapshot } = options;
  const { runId, includeDeltas } = request;
  using subscription = await live.subscribe(runId, signal); // watch-2
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
    mustRead = next === undefined; // watch-3, watch-10
    if (next === undefined) continue;
    const { update: response, position: storedAt, instance = "" } = next;
    const { update } = response;
    if (update.case === "event") {
      mustRead = update.value.sequence > view.nextSequence || storedAt === undefined; // watch-1
      if (mustRead || storedAt === undefined) continue;
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
}
