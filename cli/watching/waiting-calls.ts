import { type ToolCall, ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { delay } from "#runtime/time/delay.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { Connection } from "../connection.ts";
import { oneLine } from "../printing/print.ts";
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
  const { callId, tool, spaceId, executionType, outputSchemaJson, argumentsJson } = call;
  const asked = `${tool} ${oneLine(argumentsJson)}`;
  const answer = `'${outlineOf(outputSchemaJson)}'`;
  if (call.question !== undefined) return `waits for a person: ${asked}\n  toolbus calls answer ${callId} '{…}'`;
  if (executionType === ExecutionType.SPACE)
    return `waits for a person in the space ${spaceId}: ${asked}\n  toolbus answer ${spaceId} ${callId} ${answer}`;
  return `waits for whoever watches for ${asked}\n  toolbus calls submit ${callId} ${answer}`;
}

/** What an answer looks like: each property that the schema of the result names, with its type. */
function outlineOf(schemaJson: string): string {
  const schema: unknown = schemaJson === "" ? {} : JSON.parse(schemaJson);
  const properties = isObject(schema) && isObject(schema.properties) ? schema.properties : {};
  const parts = Object.entries(properties).map(([name, property]) => {
    const type = isObject(property) && typeof property.type === "string" ? property.type : "…";
    return `"${name}": ${type}`;
  });
  return parts.length === 0 ? "{…}" : `{${parts.join(", ")}}`;
}
