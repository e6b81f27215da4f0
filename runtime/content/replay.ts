/** A run's log folded to what a reader asks of it: what was said in each turn, what each call did, and what happened between. */

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { AnswerDropped, RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type Item, RunEndReasonSchema, RunStateSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { enumWord } from "../schema/enum-word.ts";
import { partsOf } from "../telemetry/trace-context.ts";
import { attemptText } from "./attempts.ts";
import { type Executed, executedFrom } from "./execution.ts";
import { textOfContent } from "./text.ts";

export interface Replay {
  readonly runId: string;
  readonly sessionId: string;
  readonly agent: string;
  readonly acceptedAt: string;
  /** The trace that it belongs to; absent if nobody traced. */
  readonly traceId?: string;
  readonly parent?: { runId: string; callId: string; depth: number };
  readonly fork?: { runId: string; atSequence: number };
  readonly given: readonly string[];
  readonly steps: readonly Step[];
  /** Events that were read. */
  readonly events: number;
}

/** What happened, with its place in the log and the time since the run was accepted. */
export type Step = { readonly sequence: number; readonly atMs: number } & (
  | {
      readonly kind: "turn";
      readonly turn: number;
      readonly attempt: number;
      readonly model: string;
      readonly finishReason: string;
      readonly thoughts: readonly string[];
      readonly text: string;
      readonly calls: readonly ReplayedCall[];
      readonly usage: { inputTokens: number; outputTokens: number; cost?: { currencyCode: string; micros: number } };
    }
  | { readonly kind: "note"; readonly text: string }
  | { readonly kind: "end"; readonly status: string; readonly reason: string; readonly error: string }
);

export interface ReplayedCall {
  readonly callId: string;
  readonly name: string;
  readonly arguments: string;
  /** Absent while the call has no result. */
  result?: {
    readonly output: string;
    readonly isError: boolean;
    readonly sequence: number;
    readonly afterMs: number;
    /** Absent for a call that nobody executed. */
    readonly execution?: Executed;
  };
}

/** The events of a run's log up to that one, from a watch that begins with the first: a run that goes on is not waited for. */
export async function eventsUpTo(last: number, updates: AsyncIterable<WatchedUpdate>): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const { update } of updates) {
    if (update.case !== "event") continue;
    if (update.value.sequence <= last) events.push(update.value);
    if (update.value.sequence >= last) break;
  }
  return events;
}

/** What a watch of a run sends. */
export interface WatchedUpdate {
  readonly update:
    | { readonly case: "event"; readonly value: RunEvent }
    | { readonly case: "delta" | "replaced" | "start" | "gap" | undefined };
}

/** Folds the events, which begin with `accepted`; undefined for a log without any. */
export function replayFromEvents(events: readonly RunEvent[]): Replay | undefined {
  const first = events[0];
  if (first?.event.case !== "accepted") return undefined;
  const { sessionId, agent, parent, fork, input } = first.event.value;
  const traceId = partsOf(first.event.value)?.traceId;
  const startMs = msOf(first);
  const openCalls = new Map<string, { call: ReplayedCall; sinceMs: number }>();
  const steps = events.slice(1).flatMap((event) => stepFromEvent(event, msOf(event) - startMs, openCalls) ?? []);
  return {
    runId: first.runId,
    sessionId,
    agent,
    acceptedAt: new Date(startMs).toISOString(),
    ...(traceId && { traceId }),
    ...(parent && { parent: { runId: parent.runId, callId: parent.callId, depth: parent.depth } }),
    ...(fork && { fork: { runId: fork.runId, atSequence: fork.atSequence } }),
    given: input.map(textOfItem),
    steps,
    events: events.length,
  };
}

type OpenCalls = Map<string, { call: ReplayedCall; sinceMs: number }>;

function stepFromEvent({ sequence, event }: RunEvent, atMs: number, openCalls: OpenCalls): Step | undefined {
  const note = (text: string): Step => ({ sequence, atMs, kind: "note", text });
  switch (event.case) {
    case "claimed":
      return note("claimed by a process");
    case "inboxTaken":
      return note(`from the inbox: ${event.value.items.map(textOfItem).join(" · ")}`);
    case "contextCompacted":
      return note(`what was before event ${event.value.beforeSequence} is summarised: ${event.value.summary}`);
    case "textCheckpoint": {
      const { turn, attempt, text } = event.value;
      return note(`turn ${turn}, ${attemptText(attempt)}, says: ${text}`);
    }
    case "answerDropped": {
      const { turn, attempt, model, usage } = event.value;
      const used = `${usage?.inputTokens ?? 0} tokens in, ${usage?.outputTokens ?? 0} out`;
      return note(
        `turn ${turn}, ${attemptText(attempt)}: the answer of ${model} ${whyDropped(event.value)} and was dropped (${used})`,
      );
    }
    case "callShown":
      return note(`shows a call of ${event.value.tool} in space ${event.value.spaceId}`);
    case "parked":
      return note(`waits for outputs of ${event.value.calls.map(({ name }) => name).join(", ")}`);
    case "cancelRequested":
      return note(`asked to cancel${event.value.reason === "" ? "" : `: ${event.value.reason}`}`);
    case "callFinished": {
      const { callId, result } = event.value;
      const execution = executedFrom(event.value.execution);
      const open = openCalls.get(callId);
      if (open === undefined || open.call.result !== undefined || result === undefined) return undefined;
      const { outputJson: output, isError } = result;
      open.call.result = { output, isError, sequence, afterMs: atMs - open.sinceMs, ...(execution && { execution }) };
      return undefined;
    }
    case "turnCommitted": {
      const { turn, attempt, model, finishReason, items, usage } = event.value;
      const calls = callsOf(items);
      for (const call of calls) openCalls.set(call.callId, { call, sinceMs: atMs });
      const { inputTokens = 0n, outputTokens = 0n, cost } = usage ?? {};
      const said = { thoughts: textsOf(items, "reasoning"), text: textsOf(items, "message").join(""), calls };
      const used = {
        inputTokens: Number(inputTokens),
        outputTokens: Number(outputTokens),
        ...(cost && { cost: { currencyCode: cost.currencyCode, micros: Number(cost.micros) } }),
      };
      return { sequence, atMs, kind: "turn", turn, attempt, model, finishReason, ...said, usage: used };
    }
    case "ended": {
      const { state: status, endReason, error } = event.value;
      return {
        sequence,
        atMs,
        kind: "end",
        status: enumWord(RunStateSchema, status).replaceAll("_", " "),
        reason: endReason === 0 ? "" : enumWord(RunEndReasonSchema, endReason),
        error,
      };
    }
    default:
      return event.case === undefined ? undefined : note(event.case);
  }
}

export function whyDropped({ brokeOff }: Pick<AnswerDropped, "brokeOff">): string {
  return brokeOff ? "broke off," : "went against tool_choice, or held nothing,";
}

function callsOf(items: readonly Item[]): ReplayedCall[] {
  return items.flatMap(({ item }) =>
    item.case === "functionCall"
      ? [{ callId: item.value.callId, name: item.value.name, arguments: item.value.argumentsJson }]
      : [],
  );
}

function textsOf(items: readonly Item[], kind: "message" | "reasoning"): string[] {
  return items.flatMap((item) => (item.item.case === kind ? [textOfItem(item)] : []));
}

export function textOfItem({ item }: Item): string {
  switch (item.case) {
    case "message":
      return textOfContent(item.value.content);
    case "reasoning":
      return item.value.text;
    case "functionCall":
      return `${item.value.name} ${item.value.argumentsJson}`;
    case "functionCallOutput":
      return `${item.value.callId}: ${item.value.result?.outputJson ?? ""}`;
    default:
      return "";
  }
}

function msOf({ createTime: time }: RunEvent): number {
  return time === undefined ? 0 : timestampMs(time);
}
