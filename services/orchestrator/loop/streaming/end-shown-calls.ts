/** When the loop ends drafts of calls. `shown-calls.ts` has the rules. */

import { type Item, type RunEndReason, RunEndReasonSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { errorResult } from "#runtime/results/error-result.ts";
import { enumWord } from "#runtime/schema/enum-word.ts";
import type { ClaimedRun } from "../../log/claim.ts";
import { endShownCalls, openShownCalls, shownCallsOfTurn, type ToolMessageParts } from "./shown-calls.ts";

/** What an event waits for that leaves drafts behind. */
const patienceMs = 30_000;

const dropped = errorResult("the model began its answer anew: this call was not made");
const elsewhere = errorResult("the agent went to another space: the call is shown there");

/** Between two attempts at a turn: what was shown so far. The model waits for no patience here; the commit has it. */
export async function endShownCallsOfTurn(
  run: ClaimedRun,
  parts: ToolMessageParts,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return; // the next claim finds them in the log
  await endShownCalls(parts, run.state, {
    drafts: shownCallsOfTurn(run.state),
    result: dropped,
    signal,
    patienceMs: 0,
  });
}

/** Before the turn is committed: those that are no calls of it. */
export async function endShownCallsBeside(
  items: readonly Item[],
  run: ClaimedRun,
  parts: ToolMessageParts,
  signal: AbortSignal,
): Promise<void> {
  if (run.state.shown.length === 0) return;
  const made = new Set(items.map(({ item }) => (item.case === "functionCall" ? item.value.callId : "")));
  const drafts = shownCallsOfTurn(run.state).filter(({ callId }) => !made.has(callId));
  await endShownCalls(parts, run.state, { drafts, result: dropped, signal, patienceMs });
}

/** Before a call's result is written: its draft, which stands where the router did not go on with it. */
export async function endShownCall(
  { callId, result }: { callId: string; result: ToolResult },
  run: ClaimedRun,
  parts: ToolMessageParts,
  signal: AbortSignal,
): Promise<void> {
  const drafts = run.state.shown.filter((draft) => draft.callId === callId);
  await endShownCalls(parts, run.state, { drafts, result: result.isError ? result : elsewhere, signal, patienceMs });
}

/** Before the run ends. */
export async function endShownCallsOfRun(
  endReason: RunEndReason,
  run: ClaimedRun,
  parts: ToolMessageParts,
  signal: AbortSignal,
): Promise<void> {
  const why = enumWord(RunEndReasonSchema, endReason);
  const result = errorResult(`the run ended before this call was made: ${why}`);
  await endShownCalls(parts, run.state, { drafts: openShownCalls(run.state), result, signal, patienceMs });
}
