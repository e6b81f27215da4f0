import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import type { FunctionCall } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { Connection } from "../connection.ts";
import { answerCall, outcomeOf, type Tool } from "../tool.ts";

/** The calls of a run that this program answers by its functions, each once. */
export interface FunctionCalls {
  see(event: RunEvent): void;
  /** Aborts with what kept an answer from being given. */
  readonly failed: AbortSignal;
}

/** What was answered before this program came to the run, or is not wanted any more, is not begun. */
export async function openFunctionCalls(
  connection: Connection,
  runId: string,
  functions: readonly Tool[],
): Promise<FunctionCalls> {
  if (functions.length === 0) return { see: () => {}, failed: new AbortController().signal };
  const { run } = await connection.repeat(() => connection.client(RunService).getRun({ runId }));
  const { requiredCalls = [], lastSequence = -1 } = run ?? {};
  const byName = new Map(functions.map((one) => [one.name, one]));
  const begun = new Set<string>();
  const ended = new AbortController();
  const failed = new AbortController();

  async function answer({ callId, name, argumentsJson }: FunctionCall): Promise<void> {
    const outcome = await outcomeOf(byName.get(name)?.run, argumentsJson, { callId, signal: ended.signal });
    const runs = connection.client(RunService);
    await answerCall(outcome, (given) => {
      const outputs = [{ callId, ...given }];
      return connection.repeat(() => runs.submitOutputs({ runId, outputs }), ended.signal);
    });
  }

  function begin(calls: readonly FunctionCall[]): void {
    for (const call of calls) {
      if (begun.has(call.callId) || !byName.has(call.name)) continue;
      begun.add(call.callId);
      answer(call).catch((error: unknown) => {
        if (!ended.signal.aborted) failed.abort(error);
      });
    }
  }

  begin(requiredCalls);
  return {
    failed: failed.signal,
    see({ sequence, event }) {
      if (event.case === "ended") ended.abort();
      else if (sequence <= lastSequence) return;
      else if (event.case === "parked") begin(event.value.calls);
      else if (event.case === "turnCommitted") {
        const { items, clientCallIds } = event.value;
        const calls = items.flatMap(({ item }) => (item.case === "functionCall" ? [item.value] : []));
        begin(calls.filter(({ callId }) => clientCallIds.includes(callId)));
      }
    },
  };
}
