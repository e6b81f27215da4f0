/**
 * When a run is over. Each condition looks at the run before the next step and says how it ends, or nothing (LOOP-1).
 */

import { RunEndReason, RunMode, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { amountLeft } from "#runtime/money/money.ts";
import { type FoldedRun, openCallCount, openCalls, type Turn } from "../../log/state/fold.ts";
import { isFunctionToolCall, outputTextFromState } from "../../log/state/view.ts";
import { textFromResult } from "../../model/prompt/result-output.ts";
import { AGENT_SWITCHED } from "../errors/agent-switched.ts";
import { needsInbox } from "../inbox/read-inbox.ts";
import type { RunLimits } from "./limits.ts";

export interface Stop {
  readonly state: RunState;
  readonly endReason: RunEndReason;
  readonly error?: string;
  /** Where it is not what the model said last. */
  readonly outputText?: string;
}

type StopCondition = (state: FoldedRun, limits: RunLimits, nowMs: number) => Stop | undefined;

/** How a run ends that was canceled, by its client or by the switch of its session's agent, with the text that its log has. */
export function endOfCanceled(state: FoldedRun) {
  return { ...stopOfCanceled(state), outputText: outputTextFromState(state) };
}

function stopOfCanceled({ cancel }: FoldedRun): Stop {
  const endReason = cancel?.reason === AGENT_SWITCHED ? RunEndReason.AGENT_SWITCHED : RunEndReason.CANCELED;
  return { state: RunState.CANCELED, endReason };
}

const atDeadline: Stop = { state: RunState.INCOMPLETE, endReason: RunEndReason.DEADLINE };

const canceled: StopCondition = (state) => (state.cancel === undefined ? undefined : stopOfCanceled(state));

/** News started the run and another one took them. */
const nothingToSay: StopCondition = (state) =>
  needsInbox(state) ? { state: RunState.COMPLETED, endReason: RunEndReason.INBOX_EMPTY } : undefined;

const deadlinePassed: StopCondition = ({ acceptedAtMs }, { deadlineMs }, nowMs) =>
  nowMs >= acceptedAtMs + deadlineMs ? atDeadline : undefined;

const singleTurnTaken: StopCondition = ({ accepted, turns }) => {
  const last = turns.at(-1);
  return accepted.options?.mode === RunMode.SINGLE_TURN ? last && stopWith(last, RunEndReason.SINGLE_TURN) : undefined;
};

/** A last turn without calls is the answer. */
const answered: StopCondition = ({ turns }) => {
  const last = turns.at(-1);
  return last?.calls.length === 0 ? stopWith(last, RunEndReason.FINAL_ANSWER) : undefined;
};

/** The turn is the run's last, whole or cut off. */
function stopWith({ committed }: Turn, whole: RunEndReason): Stop {
  const cutOff = reasonsOfCutOff.get(committed.finishReason);
  return cutOff === undefined
    ? { state: RunState.COMPLETED, endReason: whole }
    : { state: RunState.INCOMPLETE, endReason: cutOff };
}

/** Why an answer may end in its middle, and the run with it. */
export const reasonsOfCutOff: ReadonlyMap<string, RunEndReason> = new Map([
  ["length", RunEndReason.MAX_OUTPUT_TOKENS],
  ["content-filter", RunEndReason.CONTENT_FILTER],
]);

/** TOOL-12: a built-in said so. Calls of the same turn that run here are waited for, those of the client are not. */
const skipped: StopCondition = (state) => {
  const isDone = () => openCalls(state).every((call) => isFunctionToolCall(state, call));
  return hasSkipped(state) && isDone() ? { state: RunState.COMPLETED, endReason: RunEndReason.SKIPPED } : undefined;
};

export function hasSkipped({ turns }: FoldedRun): boolean {
  return turns.at(-1)?.endsRun ?? false;
}

/** LOOP-12: a tool at which the run is to stop has answered; the tool that failed leaves it to the model what to do. */
const stoppedAtTool: StopCondition = (state) => {
  const turn = state.turns.at(-1);
  if (turn === undefined || openCallCount(state) > 0) return undefined;
  const answers = turn.committed.stopCallIds.flatMap((callId) => turn.resultsByCallId.get(callId) ?? []);
  const answer = answers.find(({ isError }) => !isError);
  if (answer === undefined) return undefined;
  const outputText = textFromResult(answer);
  return { state: RunState.COMPLETED, endReason: RunEndReason.STOPPED_AT_TOOL, outputText };
};

/** The calls over a limit were refused: the run ends with the results of the others. */
const limitReached: StopCondition = (state, { maxToolCalls, maxTurns, maxTokens, maxCost }) => {
  if (openCallCount(state) > 0) return undefined;
  const { inputTokens, outputTokens, cost } = state.spent;
  const maxOutputTokens = state.accepted.options?.modelSettings?.maxOutputTokens ?? Number.POSITIVE_INFINITY;
  const reached = [
    { endReason: RunEndReason.MAX_TOOL_CALLS, isReached: state.callCount > maxToolCalls },
    { endReason: RunEndReason.MAX_TURNS, isReached: state.turns.length >= maxTurns },
    { endReason: RunEndReason.MAX_TOKENS, isReached: Number(inputTokens + outputTokens) >= maxTokens },
    { endReason: RunEndReason.MAX_OUTPUT_TOKENS, isReached: Number(outputTokens) >= maxOutputTokens },
    { endReason: RunEndReason.MAX_COST, isReached: maxCost && amountLeft(maxCost, cost).micros === 0n },
  ].find(({ isReached }) => isReached);
  return reached && { state: RunState.INCOMPLETE, endReason: reached.endReason };
};

const stopConditions: readonly StopCondition[] = [
  canceled,
  nothingToSay,
  skipped,
  answered,
  singleTurnTaken,
  stoppedAtTool,
  deadlinePassed,
  limitReached,
];

/** The first condition that holds. */
export function decideStop(state: FoldedRun, limits: RunLimits, nowMs: number): Stop | undefined {
  for (const condition of stopConditions) {
    const stop = condition(state, limits, nowMs);
    if (stop !== undefined) return stop;
  }
  return undefined;
}

/** How a run is over before its loop began: as its log says, else by its time, as nobody has read its inbox. */
export function stopOfLate(state: FoldedRun, limits: RunLimits): Stop {
  const stop = decideStop(state, limits, Number.POSITIVE_INFINITY);
  return stop === undefined || stop.endReason === RunEndReason.INBOX_EMPTY ? atDeadline : stop;
}
