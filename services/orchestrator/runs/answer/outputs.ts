/** Outputs that a client may submit for its calls; `answers.ts` stores them. */

import { create } from "@bufbuild/protobuf";
import type { ToolOutput } from "#gen/toolbus/run/v1/run_service_pb.ts";
import {
  type CallExecution,
  CallExecutionSchema,
  ExecutionType,
  type ToolResult,
} from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Taker } from "#runtime/collections/turns/own-turn.ts";
import { type ReasonName, refuse } from "#runtime/failure/failure.ts";
import { isSameResult } from "#runtime/results/shortened.ts";
import { readableSubmissionFrom, refuseReused, resultFromOutcome } from "#runtime/results/submission.ts";
import { openSlices } from "#runtime/rpc/handling/messages/slices.ts";
import { type FoldedRun, openCalls, type Turn } from "../../log/state/fold.ts";
import { functionToolOf, isFunctionToolCall } from "../../log/state/view.ts";
import { faultOfOutput } from "../../loop/tools/function-tools.ts";

interface Output {
  readonly callId: string;
  readonly submissionId: string;
  readonly result: ToolResult;
  readonly execution: CallExecution;
}

/** LOOP-8: stores a result of the session whole that is over the limit, and gives what is shown of it. */
export type BoundResult = (result: ToolResult, sessionId: string) => Promise<ToolResult>;

const byClient = create(CallExecutionSchema, { executionType: ExecutionType.FUNCTION });

/** What is to be stored of a request, in the order of the calls. Refuses all of it for any that may not be. */
export async function checkedOutputs(
  boundResult: BoundResult,
  state: FoldedRun,
  { outputs, signal }: { readonly outputs: readonly ToolOutput[]; readonly signal: AbortSignal | undefined },
): Promise<Output[]> {
  const callIds = outputs.map(({ callId }) => callId);
  const twice = callIds.find((callId, index) => callIds.indexOf(callId) !== index);
  if (twice !== undefined) refuseCall("invalid_argument", twice, "has two outputs in one request", "INVALID_REQUEST");
  const told = await toldOutputs(outputs, { sender: state.accepted.principal, signal });
  const missing = new Set(told.filter((output) => !isTaken(state, output)));
  await refuseUnfit(state, missing);
  const order = state.turns.flatMap(({ calls }) => calls.map(({ callId }) => callId));
  const inOrder = told.toSorted((one, other) => order.indexOf(one.callId) - order.indexOf(other.callId));
  const { sessionId } = state.accepted;
  return Array.fromAsync(inOrder, async (output) =>
    missing.has(output) ? { ...output, result: await boundResult(output.result, sessionId) } : output,
  );
}

async function toldOutputs(outputs: readonly ToolOutput[], taker: Taker): Promise<Output[]> {
  const told: Output[] = [];
  const nextStep = openSlices();
  for (const { callId, submissionId, outcome } of outputs) {
    await nextStep();
    const given = await readableSubmissionFrom({ submissionId, outcome }, callId, taker); // LOOP-8
    told.push({ callId, submissionId, result: resultFromOutcome(given.outcome), execution: byClient });
  }
  return told;
}

/** Whether the call has this very output; refuses what may not be given one. */
export function isTaken(state: FoldedRun | undefined, output: Output): boolean {
  const { callId } = output;
  const turn = state?.turns.findLast(({ calls }) => calls.some((call) => call.callId === callId));
  const call = turn?.calls.find((candidate) => candidate.callId === callId);
  const standing = turn?.resultsByCallId.get(callId);
  const isOurs = state !== undefined && call !== undefined && isFunctionToolCall(state, call);
  if (isOurs && standing !== undefined && hasWon(standing, turn?.submissionsByCallId.get(callId), output)) return true;
  if (state?.phase.kind === "ended")
    refuse("failed_precondition", `run ${state.runId} has ended`, { reason: "RUN_ENDED" });
  if (state === undefined || turn === undefined || call === undefined)
    return refuseCall("not_found", callId, "is unknown in this run", "CALL_NOT_FOUND");
  if (!isOurs) refuseCall("failed_precondition", callId, "is not the client's to answer", "CALL_NOT_AWAITED");
  if (standing !== undefined)
    refuseCall("failed_precondition", callId, "has its answer already", "CALL_ALREADY_RESOLVED");
  if (!mayBeAnswered(state, turn, callId))
    refuseCall("failed_precondition", callId, "is not one that the run waits for", "CALL_NOT_AWAITED");
  return false;
}

/** Whether this submission has won. Refuses another outcome under its id. */
function hasWon(standing: ToolResult, wonBy: string | undefined, { callId, submissionId, result }: Output): boolean {
  if (submissionId === "" || submissionId !== wonBy) return false;
  const isSame = isSameResult(standing, result) && standing.isError === result.isError;
  return isSame || refuseReused(callId, submissionId);
}

/** Whether the run goes on with an output of the client's for the call. */
export function awaitsOutput(state: FoldedRun, callId: string): boolean {
  const turn = state.turns.at(-1);
  const call = openCalls(state).find((candidate) => candidate.callId === callId);
  if (turn === undefined || call === undefined || state.phase.kind === "ended" || state.cancel !== undefined)
    return false;
  return isFunctionToolCall(state, call) && mayBeAnswered(state, turn, callId);
}

/** LOOP-3: what the loop is about to refuse is nobody's to answer; who may is told by the turn's commit, or by the parking. */
function mayBeAnswered({ parkedCallIds }: FoldedRun, { committed }: Turn, callId: string): boolean {
  return parkedCallIds.has(callId) || committed.clientCallIds.includes(callId);
}

function refuseCall(
  code: "not_found" | "failed_precondition" | "invalid_argument",
  callId: string,
  what: string,
  reason: ReasonName,
): never {
  return refuse(code, `call ${callId} ${what}`, { reason, metadata: { call_id: callId } });
}

/** LOOP-8: all outputs that are not what their tools promise, by their calls. An error promises nothing. */
async function refuseUnfit(state: FoldedRun, outputs: Iterable<Output>): Promise<void> {
  const unfit: { callId: string; fault: string }[] = [];
  for (const { callId, result } of outputs) {
    const call = state.turns.at(-1)?.calls.find((candidate) => candidate.callId === callId);
    const tool = call && functionToolOf(state, call);
    const fault =
      tool && !result.isError ? await faultOfOutput(tool, result.outputJson, state.accepted.principal) : undefined;
    if (fault !== undefined) unfit.push({ callId, fault });
  }
  if (unfit.length === 0) return;
  const callIds = unfit.map(({ callId }) => callId);
  refuse(
    "invalid_argument",
    unfit.map(({ callId, fault }) => `the output of call ${callId} is refused: ${fault}`).join("; "),
    { reason: "RESULT_INVALID", metadata: { call_id: callIds[0] ?? "", call_ids: callIds.join(" ") } },
  );
}
