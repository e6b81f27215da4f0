import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { ProvidedResult } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import {
  type ExecuteToolRequest,
  type ExecuteToolResponse,
  ExecuteToolResponseSchema,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { RunEnded, RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { RunEndReasonSchema, RunState, RunStateSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { callPatience } from "#runtime/bus/link/call-patience.ts";
import { isUnavailable } from "#runtime/failure/connect.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { errorResult } from "#runtime/results/error-result.ts";
import { providedResult } from "#runtime/results/provided-result.ts";
import { SELF } from "#runtime/rpc/identity.ts";
import { enumWord } from "#runtime/schema/enum-word.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import { callsFrom } from "../../log/state/fold.ts";
import { usageFromSpent } from "../../log/state/view.ts";
import type { CancelOptions } from "../cancellation.ts";
import { openExisting } from "../existing-run.ts";
import { type WatchOptions, watchRun } from "../watch/watch.ts";
import { type SubAgentOptions, startSubAgent } from "./call.ts";
import { cancelIfOpen } from "./cancel.ts";

export interface FollowOptions extends SubAgentOptions, CancelOptions, WatchOptions {
  /** Aborts when this process stops: the run goes on elsewhere, and its callers wait there. */
  readonly stopping: AbortSignal;
}

/** How long the run that called may take to say that it is over, once its call was left. */
const partingMs = 10_000;

/** The call of a sub-agent: what its run does, then what came of it. */
export async function* callSubAgent(
  options: FollowOptions,
  request: ExecuteToolRequest,
  signal: AbortSignal,
): AsyncGenerator<ExecuteToolResponse> {
  const started = await startSubAgent(options, request, signal);
  if (started.kind === "refused") return yield response({ case: "result", value: providedResult(started.result) });
  const { runId } = started;
  let turns = 0;
  using ending = openEnding(signal, options.stopping);
  try {
    for await (const event of eventsOf(options, runId, ending.signal)) {
      if (event.event.case === "turnCommitted") turns += 1;
      const message = messageFrom(event);
      if (message !== "") yield response({ case: "progress", value: { progress: turns, message } });
      if (event.event.case !== "ended") continue;
      return yield response({ case: "result", value: await resultOf(options, runId, event.event.value) });
    }
  } catch (error) {
    const parentRunId = request.scope?.runId ?? "";
    const wasLeft = parentRunId !== "" || !isUnavailable(signal.reason);
    if (signal.aborted && !options.stopping.aborted && wasLeft)
      await callPatience.exit(() => cancelWithParent(options, parentRunId, runId));
    throw error;
  }
  throw new Failure("unavailable", `run ${runId} is followed no longer`, { reason: "STREAM_ENDED" });
}

/** sub-agent-2. */
async function cancelWithParent(options: FollowOptions, parentRunId: string, runId: string): Promise<void> {
  const reason = "the run that called it is over";
  const isOver = parentRunId === "" || (await endsSoon(options, parentRunId));
  const { signal } = new AbortController();
  if (isOver) await cancelIfOpen(options, runId, { principal: "", reason, signal });
}

async function endsSoon(options: FollowOptions, runId: string): Promise<boolean> {
  using patience = timeoutSignal(partingMs);
  using ending = openEnding(patience, options.stopping);
  const ends = ending.signal;
  try {
    for await (const { event } of eventsOf(options, runId, ends)) {
      if (event.case === "cancelRequested" || event.case === "ended") return true;
    }
  } catch (error) {
    if (!ends.aborted) throw error;
  }
  return false;
}

async function* eventsOf(options: WatchOptions, runId: string, signal: AbortSignal): AsyncGenerator<RunEvent> {
  const request = { runId, fromSequence: 0n, includeDeltas: false, cursor: undefined, caller: SELF };
  for await (const { update } of watchRun(options, request, signal)) if (update.case === "event") yield update.value;
}

async function resultOf(options: FollowOptions, runId: string, ended: RunEnded): Promise<ProvidedResult> {
  const { spent, callCount, accepted } = (await openExisting(options, runId, SELF)).state;
  const isCompleted = ended.state === RunState.COMPLETED;
  const result = isCompleted ? { outputJson: JSON.stringify(ended.outputText) } : errorResult(textOfEnd(ended));
  return {
    ...providedResult(result),
    ...{ callCount, usage: usageFromSpent(spent, accepted.options?.limits?.maxCost) },
  };
}

function textOfEnd({ state, endReason, error, outputText }: RunEnded): string {
  const how = `the agent's run ended ${enumWord(RunStateSchema, state)} (${enumWord(RunEndReasonSchema, endReason)})`;
  const parts = [how, error, outputText && `what it had written: ${outputText}`];
  return parts.filter((part) => part !== "").join(": ");
}

/** Progress of the call for people. */
function messageFrom({ event }: RunEvent): string {
  if (event.case === "accepted") return "accepted";
  if (event.case !== "turnCommitted") return "";
  const calls = callsFrom(event.value.items).map(({ name }) => name);
  return calls.length === 0 ? "answers" : `calls ${calls.join(", ")}`;
}

function response(
  event: NonNullable<MessageInitShape<typeof ExecuteToolResponseSchema>["event"]>,
): ExecuteToolResponse {
  return create(ExecuteToolResponseSchema, { event });
}
