// A run as spans on a line of time, from its stored events and what is told between them.
//
// time-1  Spans follow from events alone: the same events give the same spans, however they came.
// time-2  A span begins where what came before it ended, and ends with its event. What has no end yet is open.
// time-3  Deltas belong to an attempt; another attempt, a replacement or the stored event of the turn puts them aside.

import { create } from "@bufbuild/protobuf";
import type {
  AnswerDropped,
  CallFinished,
  CallStarted,
  RunAccepted,
  RunDelta,
  RunEnded,
  RunEvent,
  RunParked,
  RunTextReplaced,
  TurnCommitted,
} from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type FunctionCall, RunEndReason, type RunFork, type RunParent, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { type CallExecution, Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { type Usage, UsageSchema } from "#gen/toolbus/tool/v1/usage_pb.ts";
import { attemptText } from "#runtime/content/attempts.ts";
import { msOf, wordFrom } from "../../parts/words.ts";
import { askedTextOf, itemsText, resultText } from "./item-text.ts";
import { type Span, Spans } from "./spans.ts";

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
  /** The call that it answers, of an agent that called it. */
  parent: RunParent | undefined;
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

/** Reads a run's events in their order, and what is told between them. */
export class TimelineReader {
  readonly timeline: Timeline;
  readonly #spans = new Spans();

  constructor() {
    this.timeline = emptyTimeline(this.#spans.all);
  }

  event({ createTime, sequence, event }: RunEvent): void {
    this.#spans.reach(sequence, msOf(createTime));
    this.timeline.lastMs = this.#spans.nowMs;
    this.timeline.lastSequence = sequence;
    this.#take(event);
    if (this.timeline.state === RunState.IN_PROGRESS) this.#spans.askModel();
  }

  delta({ turn, attempt, delta }: RunDelta): void {
    if (delta.case === "progress") {
      const span = this.#spans.open(delta.value.callId);
      if (span) span.progress = progressText(delta.value.progress);
    } else if (delta.case === "log") {
      this.#spans.open(delta.value.callId)?.logs.push(delta.value.log?.message ?? "");
    } else if (turn > this.timeline.turnCount) {
      const draft = this.#draftOf(turn, attempt);
      if (delta.case === "text") draft.text += delta.value;
      else if (delta.case === "reasoning") draft.reasoning += delta.value;
      else if (delta.case === "arguments") {
        const { callId, name, text } = delta.value;
        draft.calls.set(callId, { name, text: (draft.calls.get(callId)?.text ?? "") + text });
      }
    }
  }

  replaced({ turn, attempt, text }: RunTextReplaced): void {
    if (turn <= this.timeline.turnCount) return;
    this.timeline.draft = { turn, attempt, text, reasoning: "", calls: new Map() };
  }

  #draftOf(turn: number, attempt: number): Draft {
    const { draft } = this.timeline;
    if (draft?.turn === turn && draft.attempt === attempt) return draft;
    this.timeline.draft = { turn, attempt, text: "", reasoning: "", calls: new Map() };
    return this.timeline.draft;
  }

  #take(event: RunEvent["event"]): void {
    const spans = this.#spans;
    switch (event.case) {
      case "accepted":
        this.#accepted(event.value);
        break;
      case "claimed":
        this.#claimed();
        break;
      case "turnCommitted":
        this.#turnCommitted(event.value);
        break;
      case "answerDropped":
        this.#answerDropped(event.value);
        break;
      case "callStarted":
        this.#callStarted(event.value);
        break;
      case "callFinished":
        this.#callFinished(event.value);
        break;
      case "parked":
        this.#parked(event.value);
        break;
      case "inboxTaken":
        spans.note("news of the inbox").input = itemsText(event.value.items);
        break;
      case "contextCompacted":
        spans.note("conversation shortened").output = event.value.summary;
        break;
      case "cancelRequested":
        spans.note("cancellation requested", { by: event.value.principal, why: event.value.reason });
        break;
      case "callShown":
        spans.note(`${event.value.tool} is shown in space ${event.value.spaceId}`);
        break;
      case "ended":
        this.#ended(event.value);
    }
  }

  #accepted({ agent, sessionId, principal, input, traceparent, fork, parent }: RunAccepted): void {
    const traceId = traceparent.split("-")[1] ?? "";
    Object.assign(this.timeline, { agent, sessionId, principal, traceId, fork, parent });
    Object.assign(this.timeline, { askedText: askedTextOf(input), startMs: this.#spans.nowMs, state: RunState.QUEUED });
    this.#spans.add("queued", "queued", "queued").input = itemsText(input);
  }

  #claimed(): void {
    const spans = this.#spans;
    if (spans.end("queued") === undefined && !spans.isOpen("parked")) spans.note("taken over by another process");
    spans.end("parked");
    Object.assign(this.timeline, { state: RunState.IN_PROGRESS, required: [] });
  }

  #turnCommitted({ turn, items, usage, model, attempt, finishReason }: TurnCommitted): void {
    const span = this.#endModel(`turn-${turn}`, `turn ${turn}`);
    this.timeline.turnCount = turn;
    this.#spans.turnCount = turn;
    span.output = itemsText(items);
    span.usage = usage;
    Object.assign(span.facts, {
      model,
      "finish reason": finishReason,
      attempt: attempt > 1 ? attemptText(attempt).slice("attempt ".length) : "",
    });
    for (const { item } of items) if (item.case === "functionCall") this.#openCall(item.value);
  }

  #answerDropped({ turn, attempt, usage, model, brokeOff }: AnswerDropped): void {
    const { lastSequence } = this.timeline;
    const span = this.#endModel(`dropped-${lastSequence}`, `turn ${turn}, ${attemptText(attempt)}: dropped`);
    span.usage = usage;
    span.isFault = true;
    Object.assign(span.facts, { model, "broke off": brokeOff ? "yes" : "no" });
  }

  #endModel(id: string, label: string): Span {
    this.timeline.draft = undefined;
    return this.#spans.endModel(id, label);
  }

  /** A call is open from the turn on that made it: not every one has an event of its start. */
  #openCall({ callId, name, argumentsJson }: FunctionCall): void {
    const span = this.#spans.add(callId, "call", name);
    span.input = argumentsJson;
    span.facts.call = callId;
  }

  #callStarted({ callId, tool, effect }: CallStarted): void {
    const span = this.#spans.open(callId) ?? this.#spans.add(callId, "call", tool);
    Object.assign(span.facts, { tool, effect: wordFrom(Effect, effect) });
  }

  #callFinished({ callId, result, usage, execution }: CallFinished): void {
    this.timeline.required = this.timeline.required.filter((call) => call.callId !== callId);
    const span = this.#spans.open(callId) ?? this.#spans.add(callId, "call", callId);
    this.#spans.end(callId);
    Object.assign(span.facts, factsOf(execution));
    if (result?.storedReference) span.facts["stored as"] = result.storedReference;
    span.output = resultText(result);
    span.isFault = result?.isError ?? false;
    span.usage = usage;
  }

  #parked({ calls }: RunParked): void {
    const span = this.#spans.add("parked", "waiting", `waits for ${calls.map(({ name }) => name).join(", ")}`);
    const input = calls.map(({ name, argumentsJson }) => `${name} ${argumentsJson}`).join("\n");
    Object.assign(span, { id: `parked-${this.timeline.lastSequence}`, input });
    Object.assign(this.timeline, { state: RunState.REQUIRES_ACTION, required: calls });
  }

  #ended({ state, endReason, error, outputText }: RunEnded): void {
    this.#spans.endAll();
    this.timeline.draft = undefined;
    Object.assign(this.timeline, { state, endReason, error, outputText, required: [] });
    const span = this.#spans.note(`${wordFrom(RunState, state)}: ${wordFrom(RunEndReason, endReason)}`);
    span.output = error || outputText;
    span.isFault = state === RunState.FAILED;
  }
}

function emptyTimeline(spans: Span[]): Timeline {
  return {
    spans,
    draft: undefined,
    state: RunState.UNSPECIFIED,
    endReason: RunEndReason.UNSPECIFIED,
    required: [],
    error: "",
    outputText: "",
    askedText: "",
    fork: undefined,
    parent: undefined,
    agent: "",
    sessionId: "",
    principal: "",
    traceId: "",
    startMs: undefined,
    lastMs: 0,
    turnCount: 0,
    lastSequence: 0,
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
