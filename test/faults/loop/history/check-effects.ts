import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { RunHistory, Violation } from "./history.ts";

interface Call {
  readonly callId: string;
  readonly tool: string;
  readonly key: string;
  readonly result: ToolResult | undefined;
}

/** How long after a cancellation something that was on its way may still arrive. */
const onItsWayMs = 250;

/** H6: effects as their class promises (LOOP-14), of calls that are committed and of no others. */
export function* checkEffects(history: RunHistory): Generator<Violation> {
  const { effects, classesByTool, events } = history;
  const calls = callsOf(history);
  const keys = new Set(calls.map(({ key }) => key));
  const sentByKey = new Map<string, string>();
  for (const { tool, key, idempotencyKey } of effects) {
    const before = sentByKey.get(key) ?? idempotencyKey;
    sentByKey.set(key, before);
    if (before !== idempotencyKey) {
      yield { rule: "same key", what: `${key} was sent with the keys ${before} and ${idempotencyKey}` };
    }
    if (!keys.has(key)) yield { rule: "effects", what: `${tool} ${key} happened and is no call of the log` };
  }
  const isCompleted = events.some(({ event }) => event.case === "ended" && event.value.state === RunState.COMPLETED);
  for (const call of calls) {
    const times = effects.filter(({ key }) => key === call.key).length;
    if (classesByTool.get(call.tool) === "at_most_once") yield* checkOnce(call, times);
    else if (classesByTool.has(call.tool)) yield* checkRepeatable(call, times, isCompleted);
  }
}

function* checkOnce({ key, result }: Call, times: number): Generator<Violation> {
  const rule = "at most once";
  if (times > 1) yield { rule, what: `${key} happened ${times} times` };
  if (result === undefined || isUnknown(result)) return;
  if (!result.isError && times === 0) yield { rule, what: `${key} is told as done and did not happen` };
  if (result.isError && times > 0) yield { rule, what: `${key} happened and is told as ${result.outputJson}` };
}

/** What may be repeated is repeated until it is done. */
function* checkRepeatable({ key, result }: Call, times: number, isCompleted: boolean): Generator<Violation> {
  const rule = "at least once";
  if (result !== undefined && !result.isError && times === 0) {
    yield { rule, what: `${key} is told as done and did not happen` };
  }
  if (isCompleted && result?.isError)
    yield { rule, what: `${key} may be repeated and is told as ${result.outputJson}` };
}

function isUnknown(result: ToolResult): boolean {
  return result.isError && result.outputJson.includes("outcome_unknown");
}

/** H7: once the client is told that the run is canceled, nothing begins any more (LOOP-15). */
export function* checkAfterCancel({ effects, canceledAtMs }: RunHistory): Generator<Violation> {
  if (canceledAtMs === undefined) return;
  for (const { key, atMs } of effects) {
    const lateMs = Math.round(atMs - canceledAtMs);
    if (lateMs <= onItsWayMs) continue;
    yield { rule: "nothing after canceled", what: `${key} happened ${lateMs} ms after the cancellation` };
  }
}

function callsOf({ events }: RunHistory): Call[] {
  const results = new Map<string, ToolResult | undefined>();
  for (const { event } of events) {
    if (event.case === "callFinished" && !results.has(event.value.callId)) {
      results.set(event.value.callId, event.value.result);
    }
  }
  return events.flatMap(({ event }) => {
    if (event.case !== "turnCommitted") return [];
    return event.value.items.flatMap(({ item }) => {
      if (item.case !== "functionCall") return [];
      const { callId, name, argumentsJson } = item.value;
      return [{ callId, tool: name, key: keyFrom(argumentsJson), result: results.get(callId) }];
    });
  });
}

function keyFrom(argumentsJson: string): string {
  try {
    return String((JSON.parse(argumentsJson) as { key?: string }).key ?? "");
  } catch {
    return ""; // what the model wrote is no JSON: it is no call of ours
  }
}
