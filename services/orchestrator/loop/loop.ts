/**
 * The loop (LOOP-1):
 *
 *            ┌──────────┐
 *      ┌────▶│  model   │  takes a turn; one append commits it: text, calls, usage
 *      │     └────┬─────┘
 *      │      calls? ──── no ───▶ end: the answer
 *      │          │ yes
 *      │     ┌────▼─────┐
 *      │     │ execute  │  dispatched after the commit; one append a result, on its way while the model is asked
 *      │     └────┬─────┘
 *      │      left for the client? ──── yes ───▶ park: nobody holds the run until the outputs are there; or end, with them
 *      └──────────┘ no
 *
 * Before the model is asked, a conversation that has outgrown its window is summarised, with an append of its own.
 * The next step follows from the log alone, so that a run that is taken over goes on in the middle of any of them.
 *
 * A turn costs two appends and one call: the turn's commit, the tool, its result. Arguments, results and files are converted for the
 * prompt once, so that a turn hardly costs more for those before it. Tools are listed at a run's first turn, and again when a call's end names
 * another list (`tools_revision`).
 */

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { RunTextReplaced } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { RunEndReason, RunMode, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { type ClaimedRun, Superseded } from "../log/claim.ts";
import { callsFrom, type FoldedRun, openCallCount, openCalls } from "../log/state/fold.ts";
import { plus } from "../log/state/spent.ts";
import { outputTextFromState } from "../log/state/view.ts";
import { isTooLarge } from "../log/too-large.ts";
import { executeCalls } from "./calls/calls.ts";
import { callsToCancel, cancelOpenCalls } from "./calls/cancel-calls.ts";
import { decideClientCalls } from "./calls/refusal.ts";
import type { LoopContext } from "./context.ts";
import { AgentSwitched } from "./errors/agent-switched.ts";
import { isTransient, retryWhileUnavailable } from "./errors/retry-while-unavailable.ts";
import { RunFailed } from "./errors/run-failed.ts";
import { takeEvents } from "./inbox/take-events.ts";
import { decideStop, hasSkipped, type Stop } from "./limits/stop-condition.ts";
import { compactIfFull } from "./prompt/compaction.ts";
import { createDeltaWriter, type DeltaWriter } from "./streaming/deltas.ts";
import { endShownCallsBeside, endShownCallsOfRun } from "./streaming/end-shown-calls.ts";
import { listTools, SOURCE_WAIT_MS } from "./tools/list-tools.ts";
import type { ToolTable } from "./tools/tool-table.ts";
import { firstAttemptOfClaim, type TurnTaken, takeTurn } from "./turn/turn.ts";

export type LoopOutcome = "ended" | "parked" | "handed_over";

/** Works on a claimed run until it ends, parks, or is to be handed over. Throws `Superseded` when it is no longer ours. */
export async function runLoop(run: ClaimedRun, given: LoopContext): Promise<LoopOutcome> {
  const context = runningContext(given);
  using deadline = timeoutSignal(Math.max(0, run.state.acceptedAtMs + context.limits.deadlineMs - context.clock.now()));
  using ending = openEnding(context.signal, deadline);
  const { signal } = ending;
  using leaving = openEnding(signal, context.handover);
  let taken: TurnTaken | undefined;
  let table: ToolTable | undefined;
  await takeEvents(run, context.inbox);
  for (;;) {
    const stop = decideStop(run.state, context.limits, context.clock.now());
    if (stop !== undefined) return stopRun(run, context, stop);
    if (context.handover.aborted) {
      await run.pending;
      return "handed_over";
    }
    try {
      if (openCalls(run.state).length === 0) {
        if (await compactIfFull(run, context, leaving.signal)) continue;
        taken = await model(run, context, leaving.signal, table);
        table = taken?.table;
      } else {
        table = await execute(run, context, signal, taken);
        if (await returnsCalls(run)) return end(run, context, callsReturned);
        if (await parks(run, context)) {
          await refuseSwitched(run, context, signal);
          return "parked";
        }
      }
    } catch (error) {
      if (run.state.cancel !== undefined) continue; // the state itself throws when the run is no longer ours
      if (error instanceof Superseded || context.signal.aborted) throw error;
      if (context.handover.aborted || deadline.aborted) continue;
      if (error instanceof AgentSwitched) {
        return end(run, context, {
          state: RunState.CANCELED,
          endReason: RunEndReason.AGENT_SWITCHED,
          error: error.message,
        });
      }
      if (!(error instanceof RunFailed)) throw error;
      return failRun(run, context, error);
    }
  }
}

async function model(
  run: ClaimedRun,
  context: RunningContext,
  signal: AbortSignal,
  known: ToolTable | undefined,
): Promise<TurnTaken | undefined> {
  using ending = openEnding(signal);
  run.pending.catch(ending.end); // the results that the model is asked with
  const ends = ending.signal;
  const table = known?.isStillCurrent() ? known : await context.list(run.state, ends);
  const taken = await takeTurn(run, context, table, ending);
  if (taken === undefined) return undefined;
  const { turn, attempt, items, answer, usage } = taken;
  const { modelId, finishReason } = answer;
  const clientCallIds = await clientCallsOfTurn(run, context, taken);
  const { stopAtTools } = context.limits;
  const stopCalls = callsFrom(items).filter(({ name }) => taken.table.stopsAt(stopAtTools, name));
  const stopCallIds = stopCalls.map(({ callId }) => callId);
  await endShownCallsBeside(items, run, context, ends);
  try {
    await run.append(() => ({
      case: "turnCommitted",
      value: { turn, attempt, items, usage, model: modelId, finishReason, clientCallIds, stopCallIds },
    }));
  } catch (error) {
    if (!isTooLarge(error) && !(error instanceof Superseded)) throw error;
    await run.spend({ case: "answerDropped", value: { turn, attempt, usage, model: modelId } });
    throw isTooLarge(error) ? new RunFailed(RunEndReason.TURN_TOO_LARGE, error.message, error) : error;
  }
  return taken;
}

function clientCallsOfTurn({ state }: ClaimedRun, { limits }: LoopContext, taken: TurnTaken): Promise<string[]> {
  const { items, table, turn, usage, answer } = taken;
  return decideClientCalls(callsFrom(items), {
    table,
    options: state.accepted.options,
    principal: state.accepted.principal,
    finishReason: answer.finishReason,
    turn,
    callsBefore: state.callCount,
    spent: plus(state.spent, usage),
    limits,
  });
}

/** A turn that another process committed may have been dispatched by it: its calls are recovered. */
async function execute(
  run: ClaimedRun,
  context: RunningContext,
  signal: AbortSignal,
  taken: TurnTaken | undefined,
): Promise<ToolTable> {
  const table = taken?.table ?? (await context.list(run.state, signal));
  const deltas = taken?.deltas ?? recoveringDeltas(run, context);
  await executeCalls(run, context, { table, deltas, signal, isRecovering: taken === undefined });
  return table;
}

function recoveringDeltas(run: ClaimedRun, context: LoopContext): DeltaWriter {
  const turn = run.state.turns.length;
  return createDeltaWriter({ turn, attempt: firstAttemptOfClaim(run.state) }, context.publishDelta);
}

/** LOOP-18: what is left is the client's, and the run ends with it. */
async function returnsCalls(run: ClaimedRun): Promise<boolean> {
  if (run.state.accepted.options?.mode !== RunMode.RETURN_CALLS) return false;
  await run.pending;
  return openCallCount(run.state) > 0 && !hasSkipped(run.state);
}

const callsReturned: Stop = { state: RunState.COMPLETED, endReason: RunEndReason.CLIENT_CALLS };

/** LOOP-5: what is left waits for the client, unless its outputs came meanwhile or nobody needs them. */
async function parks(run: ClaimedRun, { limits }: LoopContext): Promise<boolean> {
  if (openCallCount(run.state) === 0) return false;
  await run.append((state) => {
    if (hasSkipped(state)) return undefined;
    const calls = openCalls(state);
    if (calls.length === 0) return undefined;
    const untilMs = state.acceptedAtMs + limits.deadlineMs;
    return {
      case: "parked",
      value: { calls, ...(Number.isFinite(untilMs) && { deadline: timestampFromMs(untilMs) }) },
    };
  });
  return run.state.phase.kind === "parked";
}

/**
 * The router cancels what is parked after it has switched a session; a run that parks at the same time checks the session itself, so that
 * one of the two sees the other, and no run of a former agent stands in the way of the session's next one.
 */
async function refuseSwitched(run: ClaimedRun, context: LoopContext, signal: AbortSignal): Promise<void> {
  const { sessionId, agent, principal } = run.state.accepted;
  try {
    if ((await context.router.agentOf(sessionId, { signal, principal })) === agent) return;
    await listTools(run.state, context, signal);
  } catch (error) {
    if (error instanceof AgentSwitched) throw error; // whatever else it is, the run waits for its client
  }
}

const cancelingMs = 30_000;

/** LOOP-15: a router that stays away cannot begin a call either; its absence does not keep a run open for ever. */
async function cancelCallsPatiently(run: ClaimedRun, { router, clock, signal }: EndingParts): Promise<void> {
  if (callsToCancel(run.state).length === 0) return;
  const cancel = () => cancelOpenCalls(router, run.state, signal);
  await retryWhileUnavailable({ clock, signal, patienceMs: cancelingMs }, cancel).catch(() => signal.throwIfAborted());
}

interface RunningContext extends LoopContext {
  /** The text that watchers got of the last turn. */
  lastText(): RunTextReplaced | undefined;
  /** Lists the tools; the first time, those that were listed when the run was claimed. */
  list(state: FoldedRun, signal: AbortSignal): Promise<ToolTable>;
}

function runningContext(context: LoopContext): RunningContext {
  let last: DeltaWriter | undefined;
  const setDeltas = (deltas: DeltaWriter) => {
    last = deltas;
    context.setDeltas(deltas);
  };
  let { listed } = context;
  let waitMs = SOURCE_WAIT_MS;
  const list = async (state: FoldedRun, signal: AbortSignal) => {
    const fromMs = context.clock.now();
    const first = listed ?? listTools(state, context, signal, waitMs);
    listed = undefined;
    const tools = await unlessAborted(first, signal);
    waitMs = Math.max(0, waitMs - (context.clock.now() - fromMs));
    return tools;
  };
  return { ...context, setDeltas, lastText: () => last?.snapshot(), list };
}

type PartsOfEnd = "router" | "clock" | "signal" | "toolMessages" | "onNotShown";
type EndingParts = Pick<LoopContext, PartsOfEnd> & Partial<Pick<RunningContext, "lastText">>;

/** A process before this one may have calls of it in flight. */
export function failRun(run: ClaimedRun, parts: EndingParts, { endReason, message }: RunFailed): Promise<LoopOutcome> {
  return stopRun(run, parts, { state: RunState.FAILED, endReason, error: message });
}

/** Ends a run that is over before its next step; one that is canceled, or has failed, once its calls are canceled. */
export async function stopRun(run: ClaimedRun, parts: EndingParts, stop: Stop): Promise<LoopOutcome> {
  if (run.state.cancel !== undefined || stop.state === RunState.FAILED) await cancelCallsPatiently(run, parts);
  return end(run, parts, stop);
}

async function end(
  run: ClaimedRun,
  context: EndingParts,
  { state, endReason, error = "", outputText }: Stop,
): Promise<LoopOutcome> {
  if (run.state.cancel === undefined) await run.pending.catch((error: unknown) => throwUnlessFinal(error, endReason));
  await endShownCallsOfRun(endReason, run, context, context.signal);
  const ending = (folded: FoldedRun) => {
    return { state, endReason, error, outputText: outputText ?? outputTextFromState(folded) };
  };
  await run.end(ending, context.lastText?.());
  return "ended";
}

/** A write that is lost for good would be lost in every process: a run that failed unexpectedly ends without it. */
function throwUnlessFinal(error: unknown, endReason: RunEndReason): void {
  if (endReason !== RunEndReason.INTERNAL_ERROR || error instanceof Superseded || isTransient(error)) throw error;
}
