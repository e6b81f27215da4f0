/**
 * Which events of the inbox joined an earlier run of their session (inbox-1), whichever conversation that run belongs to.
 *
 * A run that was over before the first of them happened has taken none. Runs that were never claimed take none, and tell
 * nothing of when the others were over.
 */

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { InboxEvent } from "#gen/toolbus/space/v1/inbox_pb.ts";
import type { RunLog } from "../../log/journal.ts";
import type { QueueEntry, SessionQueues } from "../queue.ts";
import { pastRunsOf } from "./past-runs.ts";

/** By how much the clocks of services may differ. */
const skewMs = 60_000;

export async function takenEventIds(
  queues: SessionQueues,
  log: RunLog,
  before: QueueEntry | undefined,
  events: readonly InboxEvent[],
): Promise<ReadonlySet<string>> {
  const taken = new Set<string>();
  if (events.length === 0) return taken;
  const firstMs = Math.min(...events.map(({ createTime: time }) => (time === undefined ? 0 : timestampMs(time))));
  for await (const { state } of pastRunsOf(queues, log).backward(before)) {
    if (state?.claim === undefined) continue;
    if (state.phase.kind === "ended" && state.phase.atMs + skewMs < firstMs) break;
    for (const eventId of state.inbox?.eventIds ?? []) taken.add(eventId);
  }
  return taken;
}
