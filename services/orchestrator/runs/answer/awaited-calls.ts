import type { Item } from "#gen/toolbus/run/v1/run_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { RunLog } from "../../log/journal.ts";
import { callIdsOf } from "../../log/state/view.ts";
import { findActiveRun, type SessionQueues } from "../../sessions/queue.ts";
import { awaitsOutput } from "./outputs.ts";

/**
 * LOOP-5: a run whose input answers a call that the session's active run waits for would stand behind that one, which nobody
 * has answered. Calls that an earlier run left open are another matter.
 */
export async function refuseAwaitedCalls(
  options: { log: RunLog; queues: SessionQueues; clock: Clock },
  { sessionId, previousRunId }: { sessionId: string; previousRunId: string },
  input: readonly Item[],
): Promise<void> {
  const answered = callIdsOf("functionCallOutput", input);
  if (answered.length === 0) return;
  const state = (await findActiveRun(options, sessionId))?.state;
  if (state === undefined || (previousRunId !== "" && previousRunId !== state.runId)) return;
  const callId = answered.find((candidate) => awaitsOutput(state, candidate));
  if (callId === undefined) return;
  const { runId } = state;
  refuse(
    "failed_precondition",
    `call ${callId} is waited for by run ${runId}: its output goes there, by SubmitOutputs`,
    {
      reason: "CALL_AWAITED_BY_RUN",
      metadata: { call_id: callId, run_id: runId },
    },
  );
}
