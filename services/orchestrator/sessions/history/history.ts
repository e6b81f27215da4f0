/**
 * The conversation before a run: the runs that it continues, latest first.
 *
 * history-1  A run continues the one that it names, or else the one before it in its session's queue; a run that was forked
 *     continues the other run up to the point of the fork, in that one's session.
 * history-2  Of the runs before the session's latest switch what was said is shown, or nothing, as the switch carried it (ORCH-1). A run
 *     knows its switch from its log, so that it sees the same on every replica. The runs that a fork goes on from are shown as
 *     they were to the one at whose point it stands.
 * history-3  What is kept no longer is not passed over in silence.
 * history-4  It goes back four windows of the model (1,000,000 tokens where the model names no `contextWindow`), and says what is left out.
 */

import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { Item, RunFork } from "#gen/toolbus/run/v1/run_pb.ts";
import type { RunLog } from "../../log/journal.ts";
import { type FoldedRun, foldLog } from "../../log/state/fold.ts";
import { itemsCutOff, itemsFromTurns, userItem } from "../../log/state/view.ts";
import { conversationFromState, wordsFromState } from "../../loop/prompt/conversation.ts";
import { tokensOfItems } from "../../loop/prompt/transcript.ts";
import { findEntry, type QueueEntry, type SessionQueues } from "../queue.ts";
import { pastRunsOf } from "./past-runs.ts";
import { isHidden, isSameTime, type Standing } from "./standing.ts";

/** What a run says of the one that it continues. */
export interface Continuation extends Standing {
  readonly previousRunId: string;
  readonly fork?: RunFork | undefined;
  /** The entry before it in its session's queue. */
  readonly before: QueueEntry | undefined;
}

export async function readHistory(
  queues: SessionQueues,
  log: RunLog,
  run: Continuation,
  maxTokens: () => Promise<number>,
): Promise<Item[]> {
  const parts: Item[][] = [];
  let tokens = 0;
  let seen: Seen = { from: run, isWhole: true, isForkWhole: true };
  for await (const past of runsBefore(queues, log, run)) {
    if (past.kind === "removed") {
      parts.push([userItem(`[What was said before, in run ${past.runId}, has been removed]`)]); // history-3
      break;
    }
    const { state, isForked } = past;
    seen = isForked ? seenFromFork(state.accepted, seen) : seenInSession(state.accepted, seen);
    if (isHidden(state.accepted, seen.from)) {
      if (state.accepted.switchCount < seen.from.switchCount) break;
      continue; // of an agent that the session was not given after all
    }
    if (tokens > 0 && tokens >= (await maxTokens())) {
      parts.push([userItem(`[What was said before, up to run ${state.runId}, is too long to be shown]`)]); // history-4
      break;
    }
    const { items, continuesEarlier } = seen.isWhole
      ? wholeFromState(state)
      : { items: wordsFromState(state, run.agent), continuesEarlier: true };
    parts.push(items);
    tokens += tokensOfItems(items);
    if (!continuesEarlier) break;
  }
  return parts.reverse().flat();
}

/** history-2: how a past run is seen. */
interface Seen {
  /** Whose switch counts: the run's own, or that of the one that it was forked from. */
  readonly from: Standing;
  /** With calls and results. */
  readonly isWhole: boolean;
  /** Whether this side of the latest fork on the way no switch stands. */
  readonly isForkWhole: boolean;
}

function seenFromFork(past: Standing, { isWhole }: Seen): Seen {
  return { from: past, isWhole, isForkWhole: isWhole };
}

function seenInSession(past: Standing, { from, isForkWhole }: Seen): Seen {
  return { from, isWhole: isForkWhole && isSameTime(past, from), isForkWhole };
}

function wholeFromState(state: FoldedRun): { items: Item[]; continuesEarlier: boolean } {
  const { opening, turns, continuesEarlier } = conversationFromState(state);
  return { items: [...opening, ...itemsFromTurns(turns), ...itemsCutOff(state)], continuesEarlier };
}

/** history-4: what the agent's models can be asked about, or be given to summarise. */
export function tokensBefore({ model, fallbackModel }: Agent): number {
  const window = Math.max(model?.contextWindow ?? 0, fallbackModel?.contextWindow ?? 0);
  return window === 0 ? 1_000_000 : window * 4;
}

type Past = { kind: "run"; state: FoldedRun; isForked: boolean } | { kind: "removed"; runId: string };

/** history-1; at the end, the id of a run that was removed (history-3). */
async function* runsBefore(queues: SessionQueues, log: RunLog, run: Continuation): AsyncGenerator<Past> {
  const past = pastRunsOf(queues, log);
  let { previousRunId, fork, before } = run;
  for (;;) {
    if (fork !== undefined) {
      const found = await findForked(queues, log, fork);
      if (found === undefined) {
        yield { kind: "removed", runId: fork.runId };
        return;
      }
      yield { kind: "run", state: found.state, isForked: true };
      ({ previousRunId, fork } = found.state.accepted);
      before = found.entry && (await queues.before(found.entry));
      continue;
    }
    const from: QueueEntry | undefined = previousRunId === "" ? before : await past.find(previousRunId, before);
    let goesElsewhere = false;
    for await (const { state, ...at } of past.backward(from)) {
      if (state === undefined && previousRunId !== "") {
        yield { kind: "removed", runId: previousRunId };
        return;
      }
      if (state === undefined) continue;
      yield { kind: "run", state, isForked: false };
      ({ previousRunId, fork } = state.accepted);
      before = at.before;
      goesElsewhere = fork !== undefined || (previousRunId !== "" && previousRunId !== before?.queued.runId);
      if (goesElsewhere) break;
    }
    if (!goesElsewhere) return;
  }
}

async function findForked(queues: SessionQueues, log: RunLog, { runId, atSequence }: RunFork) {
  const { records } = await log.read(runId, 0);
  const state = foldLog(records.filter(({ event }) => event.sequence <= atSequence));
  if (state === undefined) return undefined;
  const last = await queues.last(state.accepted.sessionId);
  const acceptedPosition = records[0]?.position ?? 0;
  return { state, entry: await findEntry(queues, last, { runId, acceptedPosition }) };
}
