// A run as spans on a line of time, from its stored events and what is told between them.
//
// time-1  Spans follow from events alone: the same events give the same spans, however they came.
// time-2  A span begins where what came before it ended, and ends with its event. What has no end yet is open.
// time-3  Deltas belong to an attempt; another attempt, a replacement or the stored event of the turn puts them aside.

import { create } from "@bufbuild/protobuf";
import type { RunDelta, RunEvent, RunTextReplaced } from "#gen/toolbus/run/v1/run_event_pb.ts";
import {
  type FunctionCall,
  type Item,
  Role,
  RunEndReason,
  type RunFork,
  RunState,
} from "#gen/toolbus/run/v1/run_pb.ts";
import { type CallExecution, Effect, ExecutionType, type ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { type Usage, UsageSchema } from "#gen/toolbus/tool/v1/usage_pb.ts";
import { attemptText } from "#runtime/content/attempts.ts";
import { msOf, textOf, wordFrom } from "../../parts/words.ts";

export type SpanKind = "queued" | "model" | "call" | "waiting" | "note";

export interface Span {
  readonly id: string;
  readonly kind: SpanKind;
  label: string;
  /** The turn that it is part of; 0 before the first. */
  readonly turn: number;
  readonly startMs: number;
  endMs: number | undefined;
  isFault: boolean;
  /** The stored event that ended it; of an open one, that began it. */
  sequence: number;
  input: string;
  output: string;
  usage: Usage | undefined;
  /** Further facts, by what they are. */
  readonly facts: Record<string, string>;
  /** Of a call: how far it says it is, and what it logged. */
  progress: string;
  readonly logs: string[];
}

/** What the model writes in a turn that is not stored yet. */
export interface Draft {
  turn: number;
  attempt: number;
  text: string;
  reasoning: string;
  /** Arguments by call. */
  readonly calls: Map<string, { name: string; text: string }>;
}

export interface Timeline {
  readonly spans: Span[];
  draft: Draft | undefined;
  state: RunState;
  endReason: RunEndReason;
  /** Calls that the run waits for its client to answer. */
  required: readonly FunctionCall[];
  error: string;
  outputText: string;
  /** What a person or program said to it last. */
  askedText: string;
  /** The run that it goes on from, and after which event. */
  fork: RunFork | undefined;
  agent: string;
  sessionId: string;
  principal: string;
  /** The trace that the run belongs to; empty if nobody traced. */
  traceId: string;
  startMs: number | undefined;
  /** Time of the last event. */
  lastMs: number;
  turnCount: number;
  lastSequence: number;
}

export interface TimelineReader {
  readonly timeline: Timeline;
  event(event: RunEvent): void;
  delta(delta: RunDelta): void;
  replaced(replaced: RunTextReplaced): void;
}

export function createTimeline(): TimelineReader {
  const timeline: Timeline = {
    spans: [],
    draft: undefined,
    state: RunState.UNSPECIFIED,
    endReason: RunEndReason.UNSPECIFIED,
    required: [],
    error: "",
    outputText: "",
    askedText: "",
    fork: undefined,
    agent: "",
    sessionId: "",
    principal: "",
    traceId: "",
    startMs: undefined,
    lastMs: 0,
    turnCount: 0,
    lastSequence: 0,
  };
  const openSpans = new Map<string, Span>();
  let now = 0;
  let sequence = 0;

  function add(id: string, kind: SpanKind, label: string, startMs: number): Span {
    const span: Span = {
      id,
      kind,
      label,
      turn: timeline.turnCount,
      startMs,
      endMs: undefined,
      isFault: false,
      sequence,
      input: "",
      output: "",
      usage: undefined,
      facts: {},
      progress: "",
      logs: [],
    };
    timeline.spans.push(span);
    openSpans.set(id, span);
    return span;
  }

  function end(id: string): Span | undefined {
    const span = openSpans.get(id);
    if (!span) return undefined;
    openSpans.delete(id);
    span.endMs = now;
    span.sequence = sequence;
    return span;
  }

  function note(label: string, facts: Record<string, string> = {}): Span {
    const span = add(`note-${sequence}`, "note", label, now);
    Object.assign(span.facts, facts);
    end(span.id);
    return span;
  }

  /** The model is asked as soon as nothing else is awaited. */
  function askModel(): void {
    const isAwaiting = [...openSpans.values()].some(({ kind }) => kind !== "model");
    if (isAwaiting || openSpans.has("model")) return;
    const turn = timeline.turnCount + 1;
    const span = add("model", "model", `turn ${turn}`, now);
    Object.assign(span, { turn });
  }

  function endModel(id: string, label: string): Span {
    const span = end("model") ?? add("model", "model", label, now);
    end("model");
    Object.assign(span, { id, label, endMs: now, sequence });
    timeline.draft = undefined;
    return span;
  }

  /** A call is open from the turn on that made it: not every one has an event of its start. */
  function openCall({ callId, name, argumentsJson }: FunctionCall): void {
    const span = add(callId, "call", name, now);
    span.input = argumentsJson;
    span.facts.call = callId;
  }

  function take({ event }: RunEvent): void {
    switch (event.case) {
      case "accepted": {
        const { agent, sessionId, principal, input, traceparent, fork } = event.value;
        const traceId = traceparent.split("-")[1] ?? "";
        Object.assign(timeline, { agent, sessionId, principal, traceId, fork, askedText: askedTextOf(input) });
        Object.assign(timeline, { startMs: now, state: RunState.QUEUED });
        const span = add("queued", "queued", "queued", now);
        span.input = itemsText(input);
        break;
      }
      case "claimed":
        if (end("queued") === undefined && !openSpans.has("parked")) note("taken over by another process");
        end("parked");
        Object.assign(timeline, { state: RunState.IN_PROGRESS, required: [] });
        break;
      case "turnCommitted": {
        const { turn, items, usage, model, attempt, finishReason } = event.value;
        const span = endModel(`turn-${turn}`, `turn ${turn}`);
        timeline.turnCount = turn;
        span.output = itemsText(items);
        span.usage = usage;
        Object.assign(span.facts, {
          model,
          "finish reason": finishReason,
          attempt: attempt > 1 ? attemptText(attempt).slice("attempt ".length) : "",
        });
        for (const { item } of items) if (item.case === "functionCall") openCall(item.value);
        break;
      }
      case "answerDropped": {
        const { turn, attempt, usage, model, brokeOff } = event.value;
        const span = endModel(`dropped-${sequence}`, `turn ${turn}, ${attemptText(attempt)}: dropped`);
        span.usage = usage;
        span.isFault = true;
        Object.assign(span.facts, { model, "broke off": brokeOff ? "yes" : "no" });
        break;
      }
      case "callStarted": {
        const { callId, tool, effect } = event.value;
        const span = openSpans.get(callId) ?? add(callId, "call", tool, now);
        Object.assign(span.facts, { tool, effect: wordFrom(Effect, effect) });
        break;
      }
      case "callFinished": {
        const { callId, result, usage, execution } = event.value;
        timeline.required = timeline.required.filter((call) => call.callId !== callId);
        if (!openSpans.has(callId)) add(callId, "call", callId, now);
        const span = end(callId);
        if (!span) break;
        Object.assign(span.facts, factsOf(execution));
        span.output = resultText(result);
        span.isFault = result?.isError ?? false;
        span.usage = usage;
        break;
      }
      case "parked": {
        const span = add("parked", "waiting", `waits for ${event.value.calls.map(({ name }) => name).join(", ")}`, now);
        span.input = event.value.calls.map(({ name, argumentsJson }) => `${name} ${argumentsJson}`).join("\n");
        Object.assign(timeline, { state: RunState.REQUIRES_ACTION, required: event.value.calls });
        break;
      }
      case "inboxTaken":
        note("news of the inbox").input = itemsText(event.value.items);
        break;
      case "contextCompacted":
        note("conversation shortened").output = event.value.summary;
        break;
      case "cancelRequested":
        note("cancellation requested", { by: event.value.principal, why: event.value.reason });
        break;
      case "callShown":
        note(`${event.value.tool} is shown in space ${event.value.spaceId}`);
        break;
      case "ended": {
        const { state, endReason, error, outputText } = event.value;
        for (const id of [...openSpans.keys()]) {
          const span = end(id);
          if (span?.kind === "model") timeline.spans.splice(timeline.spans.indexOf(span), 1);
        }
        timeline.draft = undefined;
        Object.assign(timeline, { state, endReason, error, outputText, required: [] });
        const span = note(`${wordFrom(RunState, state)}: ${wordFrom(RunEndReason, endReason)}`);
        span.output = error || outputText;
        span.isFault = state === RunState.FAILED;
        return;
      }
    }
    if (timeline.state === RunState.IN_PROGRESS) askModel();
  }

  function draftOf(turn: number, attempt: number): Draft {
    const { draft } = timeline;
    if (draft?.turn === turn && draft.attempt === attempt) return draft;
    timeline.draft = { turn, attempt, text: "", reasoning: "", calls: new Map() };
    return timeline.draft;
  }

  return {
    timeline,
    event(event) {
      now = msOf(event.createTime) ?? now;
      sequence = event.sequence;
      timeline.lastMs = now;
      timeline.lastSequence = sequence;
      take(event);
    },
    delta({ turn, attempt, delta }) {
      if (delta.case === "progress") {
        const span = openSpans.get(delta.value.callId);
        if (span) span.progress = progressText(delta.value.progress);
      } else if (delta.case === "log") {
        openSpans.get(delta.value.callId)?.logs.push(delta.value.log?.message ?? "");
      } else if (turn > timeline.turnCount) {
        const draft = draftOf(turn, attempt);
        if (delta.case === "text") draft.text += delta.value;
        else if (delta.case === "reasoning") draft.reasoning += delta.value;
        else if (delta.case === "arguments") {
          const { callId, name, text } = delta.value;
          draft.calls.set(callId, { name, text: (draft.calls.get(callId)?.text ?? "") + text });
        }
      }
    },
    replaced({ turn, attempt, text }) {
      if (turn <= timeline.turnCount) return;
      timeline.draft = { turn, attempt, text, reasoning: "", calls: new Map() };
    },
  };
}

function factsOf(execution: CallExecution | undefined): Record<string, string> {
  if (!execution) return {};
  const { executionType, provider, attemptCount } = execution;
  const kind = executionType === ExecutionType.UNSPECIFIED ? "" : wordFrom(ExecutionType, executionType);
  return { kind, provider, attempts: attemptCount > 0 ? `${attemptCount}` : "" };
}

function progressText(progress: { progress: number; total: number; message: string } | undefined): string {
  if (!progress) return "";
  const { progress: done, total, message } = progress;
  return `${total > 0 ? `${Math.round((100 * done) / total)} %` : done} ${message}`.trim();
}

export function resultText(result: ToolResult | undefined): string {
  if (!result) return "";
  const blocks = result.content.map(({ blockJson }) => blockJson).filter((text) => text !== "");
  return [result.outputJson, ...blocks].filter((text) => text !== "").join("\n") || result.storedReference;
}

function askedTextOf(input: readonly Item[]): string {
  const said = input.findLast(({ item }) => item.case === "message" && item.value.role === Role.USER);
  return said ? itemText(said.item) : "";
}

/** What was said, in words: a line for who says it, then what. */
export function itemsText(items: readonly { readonly item: Item["item"] | InputCase }[]): string {
  return items.map(({ item }) => itemText(item)).join("\n\n");
}

type InputCase = { case: undefined; value?: undefined };

function itemText(item: Item["item"] | InputCase): string {
  switch (item.case) {
    case "message":
      return textOf(item.value.content);
    case "functionCall":
      return `→ ${item.value.name} ${item.value.argumentsJson}`;
    case "functionCallOutput":
      return `← ${resultText(item.value.result)}`;
    case "reasoning":
      return `(thinks) ${item.value.text}`;
    default:
      return "";
  }
}

/** What all spans used together, in the currency of the first that cost something. */
export function spentOf({ spans }: Timeline): Usage {
  const usages = spans.flatMap(({ usage }) => (usage ? [usage] : []));
  const currencyCode = usages.find(({ cost }) => cost)?.cost?.currencyCode ?? "";
  const sum = (of: (usage: Usage) => bigint) => usages.reduce((total, usage) => total + of(usage), 0n);
  const micros = sum(({ cost }) => (cost?.currencyCode === currencyCode ? cost.micros : 0n));
  return create(UsageSchema, {
    inputTokens: sum(({ inputTokens }) => inputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    ...(currencyCode && { cost: { currencyCode, micros } }),
  });
}
