/**
 * The conversation before a run: the runs that it continues, latest first, as far as they are of the same agent.
 *
 * H1  A run continues the one that it names, or else the one before it in its session's queue; a run that was forked
 *     continues the other run up to the point of the fork, in that one's session.
 * H2  What a run of another agent said is not shown (ORCH-1), but what it continues is.
 * H3  What is kept no longer is not passed over in silence.
 */

import { create } from "@bufbuild/protobuf";
import { type Item, ItemSchema, Role, type RunFork } from "#gen/toolbus/run/v1/run_pb.ts";
import { conversationFromState } from "../run/conversation.ts";
import { foldLog, type RunState } from "../run/fold.ts";
import type { RunLog } from "../run/journal.ts";
import { itemsCutOff, itemsFromTurns } from "../run/view.ts";
import { entriesBackward, type QueueEntry, type SessionQueues } from "./queue.ts";

export interface History {
  readonly items: Item[];
  /** Events of the inbox that joined one of these runs. */
  readonly takenEventIds: ReadonlySet<string>;
}

/** What a run says of the one that it continues. */
export interface Continuation {
  readonly agent: string;
  readonly previousRunId: string;
  readonly fork: RunFork | undefined;
  /** The entry before it in its session's queue. */
  readonly before: QueueEntry | undefined;
}

export async function readHistory(queues: SessionQueues, log: RunLog, run: Continuation): Promise<History> {
  const parts: Item[][] = [];
  const takenEventIds = new Set<string>();
  for await (const state of runsBefore(queues, log, run)) {
    if (typeof state === "string") {
      parts.push([removed(state)]);
      break;
    }
    for (const eventId of state.inbox?.eventIds ?? []) takenEventIds.add(eventId);
    if (state.accepted.agent !== run.agent) continue; // H2
    const { opening, turns, continuesEarlier } = conversationFromState(state);
    parts.push([...opening, ...itemsFromTurns(turns), ...itemsCutOff(state)]);
    if (!continuesEarlier) break;
  }
  return { items: parts.reverse().flat(), takenEventIds };
}

/** H3. */
function removed(runId: string): Item {
  const text = `[What was said before, in run ${runId}, has been removed]`;
  return create(ItemSchema, { item: { case: "message", value: { role: Role.USER, text } } });
}

/** H1; at the end, the id of a run that was removed (H3). */
async function* runsBefore(queues: SessionQueues, log: RunLog, run: Continuation): AsyncGenerator<RunState | string> {
  let { previousRunId, fork, before } = run;
  for (;;) {
    const found = await (fork === undefined
      ? findPrevious(queues, log, { previousRunId, before })
      : findForked(queues, log, fork));
    if (found === undefined) {
      if (fork !== undefined) yield fork.runId;
      return;
    }
    yield found.state;
    ({ previousRunId, fork } = found.state.accepted);
    before = found.entry && (await queues.before(found.entry));
  }
}

async function findPrevious(
  queues: SessionQueues,
  log: RunLog,
  { previousRunId, before }: Pick<Continuation, "previousRunId" | "before">,
): Promise<{ state: RunState; entry: QueueEntry } | undefined> {
  for await (const entry of entriesBackward(queues, before)) {
    const { runId } = entry.queued;
    if (previousRunId !== "" && previousRunId !== runId) continue;
    const state = await readState(log, runId);
    if (state !== undefined) return { state, entry };
  }
  return undefined;
}

async function findForked(queues: SessionQueues, log: RunLog, { runId, atSequence }: RunFork) {
  const state = await readState(log, runId, atSequence);
  if (state === undefined) return undefined;
  for await (const entry of entriesBackward(queues, await queues.last(state.accepted.sessionId))) {
    if (entry.queued.runId === runId) return { state, entry };
  }
  return { state, entry: undefined };
}

async function readState(log: RunLog, runId: string, atSequence = Number.POSITIVE_INFINITY) {
  const events = (await log.read(runId, 0)).map(({ event }) => event);
  return foldLog(events.filter(({ sequence }) => sequence <= atSequence));
}
