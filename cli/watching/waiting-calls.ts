import { type ToolCall, ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { questionOf } from "#runtime/content/questions.ts";
import { delay } from "#runtime/time/delay.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { sampleJson } from "../answering/sample-answer.ts";
import type { Connection } from "../connection.ts";
import { invocation } from "../faults/invocation.ts";
import { oneLine } from "../printing/print.ts";
import { quoted } from "../printing/quoted.ts";
import type { RunPrinter } from "../printing/run-printer.ts";

/** A call that takes longer than that is looked up. */
const PATIENCE_MS = 1_000;

interface WatchedRun {
  readonly id: string;
  readonly sessionId: string;
}

export interface WaitingCalls extends Disposable {
  /** Told of all that happens in the run. */
  readonly see: RunPrinter["show"];
}

/** Tells of the calls of a run that wait for somebody outside; of each once. */
export function openWaitingCalls(
  connection: Connection,
  run: WatchedRun,
  tell: (call: ToolCall) => void,
): WaitingCalls {
  const calls = connection.client(ToolCallService);
  const ending = openEnding();
  const open = new Set<string>();
  const told = new Set<string>();

  async function look(): Promise<void> {
    const states = [ToolCallState.WAITING, ToolCallState.PENDING];
    const response = await calls.listToolCalls({ sessionId: run.sessionId, states }, { signal: ending.signal });
    for (const call of response.calls.filter(({ runId }) => runId === run.id)) {
      if (told.has(call.callId)) continue;
      told.add(call.callId);
      tell(call);
    }
  }

  async function keepLooking(): Promise<void> {
    for (;;) {
      await delay(PATIENCE_MS, ending.signal);
      if (open.size > 0) await look().catch(() => {}); // the run itself is shown on, and says what is wrong
    }
  }
  void keepLooking().catch(() => {}); // ended

  return {
    see({ update }) {
      if (update.case !== "event") return;
      const { event } = update.value;
      if (event.case === "callFinished") open.delete(event.value.callId);
      if (event.case !== "turnCommitted") return;
      for (const { item } of event.value.items) if (item.case === "functionCall") open.add(item.value.callId);
    },
    [Symbol.dispose]: () => ending.end(),
  };
}

/** Whose turn it is, and what to type. */
export function textOfWaiting(call: ToolCall): string {
  const { callId, tool, spaceId, executionType, argumentsJson } = call;
  const asked = `${tool} ${oneLine(argumentsJson)}`;
  const sample = quoted(sampleJson(questionOf(call).schemaJson));
  if (call.question !== undefined)
    return `waits for a person: ${asked}\n  ${invocation} calls answer ${callId} ${sample}`;
  if (executionType === ExecutionType.SPACE)
    return `waits for a person in the space ${spaceId}: ${asked}\n  ${invocation} answer ${spaceId} ${callId} ${sample}`;
  return `waits for whoever watches for ${asked}\n  ${invocation} calls submit ${callId} ${sample}`;
}
