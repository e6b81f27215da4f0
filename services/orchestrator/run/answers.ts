import type { FunctionCallOutput } from "#gen/toolbus/run/v1/run_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { type Asker, requireOwner } from "#runtime/failure/session-owner.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { WakeQueue } from "../session/wake.ts";
import { openCallCount, type RunState, type Turn } from "./fold.ts";
import { faultOfOutput } from "./function-tools.ts";
import { openJournal, type RunJournal, type RunLog } from "./journal.ts";
import { functionToolOf, isFunctionToolCall } from "./view.ts";

export interface AnswerOptions {
  readonly log: RunLog;
  readonly wakes: Pick<WakeQueue, "send">;
  readonly clock: Clock;
}

/** LOOP-5: outputs of the client's tools, also in parts. All are checked before the first is written: one that is refused loses no other. */
export async function submitOutputs(
  options: AnswerOptions,
  runId: string,
  outputs: readonly FunctionCallOutput[],
  asker?: Asker,
): Promise<RunState> {
  const journal = await openExisting(options, runId, asker);
  const callIds = outputs.map(({ callId }) => callId);
  const twice = callIds.find((callId, index) => callIds.indexOf(callId) !== index);
  if (twice !== undefined) refuseCall("invalid_argument", twice, "has two outputs in one request", "CALL_REPEATED");
  for (const { callId, result } of outputs) {
    checkCall(journal.state, callId);
    if (result === undefined)
      refuseCall("invalid_argument", callId, "is given an output without a result", "OUTPUT_EMPTY");
    if (jsonValueOf(result) === undefined)
      refuseCall("invalid_argument", callId, "is given an output that is not JSON", "OUTPUT_NOT_JSON"); // LOOP-8
  }
  refuseUnfit(journal.state, outputs);
  const wake = announcer(options, journal);
  for (const { callId, result } of outputs) {
    await journal.append(
      (state) => {
        checkCall(state, callId);
        return result && { case: "callFinished", value: { callId, result: outputOf(result) } };
      },
      { announce: async (eventCount) => (isLastOutput(journal) ? wake(eventCount) : undefined) },
    );
  }
  return journal.state ?? notFound(runId);
}

/** Of outputs that come in parts, only the last one makes the run go on: the others wake nobody. */
function isLastOutput({ state }: RunJournal): boolean {
  return state === undefined || openCallCount(state) <= 1;
}

/** What a client says of its call; how the run goes on, and what it has spent, is not for it to say. */
function outputOf(result: ToolResult) {
  const { outputJson, isError, storedReference } = result;
  return { outputJson: isError ? errorJsonFrom(jsonValueOf(result)) : outputJson, isError, storedReference };
}

/** KIND-4: an error of a tool has one form. */
function errorJsonFrom(value: unknown): string {
  const isInForm = typeof value === "object" && value !== null && "error" in value && typeof value.error === "string";
  if (isInForm) return JSON.stringify(value);
  return JSON.stringify({ error: typeof value === "string" ? value : JSON.stringify(value) });
}

/** Undefined for what is not JSON. */
function jsonValueOf({ outputJson }: ToolResult): unknown {
  try {
    return JSON.parse(outputJson);
  } catch {
    return undefined;
  }
}

function checkCall(state: RunState | undefined, callId: string): void {
  if (state?.phase.kind === "ended")
    refuse("failed_precondition", `run ${state.runId} has ended`, { reason: "RUN_ENDED" });
  const turn = state?.turns.findLast(({ calls }) => calls.some((call) => call.callId === callId));
  const call = turn?.calls.find((candidate) => candidate.callId === callId);
  if (state === undefined || turn === undefined || call === undefined)
    refuseCall("not_found", callId, "is unknown in this run", "CALL_UNKNOWN");
  if (!isFunctionToolCall(state, call))
    refuseCall("failed_precondition", callId, "is not the client's to answer", "CALL_FOREIGN");
  if (turn.resultsByCallId.has(callId))
    refuseCall("failed_precondition", callId, "has its answer already", "CALL_ALREADY_RESOLVED");
  if (!mayBeAnswered(state, turn, callId))
    refuseCall("failed_precondition", callId, "is not one that the run waits for", "CALL_NOT_AWAITED");
}

/** LOOP-3: what the loop is about to refuse is nobody's to answer; who may is told by the turn's commit, or by the parking. */
function mayBeAnswered({ parkedCallIds }: RunState, { committed }: Turn, callId: string): boolean {
  return parkedCallIds.has(callId) || committed.clientCallIds.includes(callId);
}

function refuseCall(
  code: "not_found" | "failed_precondition" | "invalid_argument",
  callId: string,
  what: string,
  reason: string,
): never {
  return refuse(code, `call ${callId} ${what}`, { reason, metadata: { call_id: callId } });
}

/** LOOP-8: all outputs that are not what their tools promise, by their calls. An error promises nothing. */
function refuseUnfit(state: RunState | undefined, outputs: readonly FunctionCallOutput[]): void {
  const unfit = outputs.flatMap(({ callId, result }) => {
    const call = state?.turns.at(-1)?.calls.find((candidate) => candidate.callId === callId);
    const tool = state && call && functionToolOf(state, call);
    const fault = tool && result && !result.isError ? faultOfOutput(tool, result.outputJson) : undefined;
    return fault === undefined ? [] : [{ callId, fault }];
  });
  if (unfit.length === 0) return;
  const callIds = unfit.map(({ callId }) => callId);
  refuse(
    "invalid_argument",
    unfit.map(({ callId, fault }) => `the output of call ${callId} is refused: ${fault}`).join("; "),
    {
      reason: "OUTPUT_UNFIT",
      metadata: { call_id: callIds[0] ?? "", call_ids: callIds.join(" ") },
    },
  );
}

/** A run is for the owner of its session, which is the principal that it is made for. */
export async function openExisting(
  { log, clock }: Pick<AnswerOptions, "log" | "clock">,
  runId: string,
  asker?: Asker,
): Promise<RunJournal> {
  const journal = await openJournal(log, runId, clock);
  requireOwner(journal.state?.accepted ?? notFound(runId), asker);
  return journal;
}

/** Wakes the session for what is to be appended. */
export function announcer({ wakes }: AnswerOptions, { state }: RunJournal) {
  return (eventCount: number) =>
    wakes.send({ sessionId: state?.accepted.sessionId ?? "", runId: state?.runId ?? "", eventCount });
}

export function notFound(runId: string): never {
  return refuse("not_found", `there is no run ${runId}`, { reason: "RUN_UNKNOWN", metadata: { run_id: runId } });
}
