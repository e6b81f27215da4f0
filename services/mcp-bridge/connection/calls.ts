import { create } from "@bufbuild/protobuf";
import type { InputKind, InputRequired, InputResponses } from "#gen/toolbus/provider/v1/input_pb.ts";
import type { ProvidedResult } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import {
  type ExecuteToolResponse,
  ExecuteToolResponseSchema,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { LogLevel, ToolLogSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { type Changes, createChanges } from "#runtime/collections/changes.ts";
import { Failure, refuse } from "#runtime/failure/failure.ts";
import { boundedEvent } from "#runtime/results/bounded-event.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { orAborted } from "#runtime/time/unless-aborted.ts";
import type { Ask } from "./input/elicitation.ts";
import { OpenInput } from "./input/open-input.ts";
import { parseState } from "./input/required.ts";
import type { Retention } from "./retention.ts";

export type CallEvent = ExecuteToolResponse["event"];

/** The way from a call to those who wait for it. */
export interface CallChannel {
  tell(event: CallEvent): void;
  readonly ask: Ask;
}

/** What came of an execution: a result, or what the call needs before it is executed again. */
export type Executed = { kind: "result"; result: ProvidedResult } | { kind: "input"; required: InputRequired };

/** Executes a call; the signal aborts when nobody waits for it any more. */
export type CallWork = (channel: CallChannel, signal: AbortSignal) => Promise<Executed>;

export interface JoiningCall {
  readonly id: string;
  readonly work: CallWork;
  readonly signal: AbortSignal;
  readonly accepted: readonly InputKind[];
  /** Answers to what the call asked for. */
  readonly responses: InputResponses | undefined;
}

type Outcome = Executed | { kind: "failed"; error: unknown };

interface CallRecord {
  /** Progress and logs, of which only the last are kept. */
  events: CallEvent[];
  /** How many came before the first of `events`. */
  forgotten: number;
  outcome?: Outcome;
  readonly input: OpenInput;
  accepted: readonly InputKind[];
  readers: number;
  /** Aborts when nobody waits for the call any more, or it has ended. */
  readonly over: AbortController;
  readonly changes: Changes;
}

const MAX_EVENTS = 256;
/** Made once: most calls end without a question. */
const CALL_ENDED = new Failure("canceled", "the call that it was asked for has ended", { reason: "CANCELED" });

/**
 * The calls of one connection. A second call under the same id joins the first, or is given its result for a while. A call
 * that nobody waits for any more is canceled. What failed is not kept: whether it may be repeated, others decide.
 */
export class Calls {
  readonly #records = new Map<string, CallRecord>();
  readonly #retention: Retention;
  /** How many have not ended. */
  running = 0;

  constructor(retention: Retention) {
    this.#retention = retention;
  }

  /** The call's progress and logs, then its result, or what it asks for; throws what the call failed with. */
  async *join({ id, work, signal, accepted, responses }: JoiningCall): AsyncGenerator<ExecuteToolResponse> {
    const known = this.#records.get(id);
    const isLive = responses !== undefined && parseState(responses.state).live !== undefined;
    const record = known ?? (isLive ? refuseGone() : this.#start(id, work));
    record.readers += 1;
    record.accepted = accepted;
    if (isLive) record.input.answer(responses);
    try {
      for (let seen = isLive ? record.forgotten + record.events.length : 0; ; ) {
        const changed = record.changes.next();
        for (seen = Math.max(seen, record.forgotten); seen < record.forgotten + record.events.length; seen++) {
          const event = record.events[seen - record.forgotten];
          const isOver = event?.case === "inputRequired" && event.value !== record.input.required;
          if (event && !isOver) yield create(ExecuteToolResponseSchema, { event });
        }
        const { outcome } = record;
        if (outcome?.kind === "failed") throw outcome.error;
        if (outcome) {
          yield create(ExecuteToolResponseSchema, { event: lastEventOf(outcome) });
          return;
        }
        await orAborted(changed, signal);
      }
    } finally {
      record.readers -= 1;
      if (record.readers === 0 && !record.outcome) this.#abandon(id, record);
    }
  }

  /** Who asks again under the id of a call that is being canceled starts another. */
  #abandon(id: string, record: CallRecord): void {
    this.#records.delete(id);
    this.running -= 1;
    record.over.abort(new Failure("canceled", "nobody waits for this call any more", { reason: "CANCELED" }));
  }

  #start(id: string, work: CallWork): CallRecord {
    this.#retention.forgetOld();
    const record: CallRecord = {
      events: [],
      forgotten: 0,
      input: new OpenInput((required) => tell({ case: "inputRequired", value: required })),
      accepted: [],
      readers: 0,
      over: new AbortController(),
      changes: createChanges(),
    };
    this.#records.set(id, record);
    this.running += 1;
    const tell = (event: CallEvent) => {
      if (record.outcome) return;
      record.events.push(event.case === "progress" || event.case === "log" ? boundedEvent(event) : event);
      if (record.events.length > MAX_EVENTS) {
        record.events.shift();
        record.forgotten += 1;
      }
      record.changes.tell();
    };
    const end = (outcome: Outcome) => {
      record.outcome = outcome;
      record.over.abort(CALL_ENDED);
      if (this.#records.get(id) === record) {
        this.running -= 1;
        if (outcome.kind === "result") this.#retain(id, record, outcome.result);
        else this.#records.delete(id);
      }
      record.changes.tell();
    };
    const ask: Ask = async (kind, request, signal) => {
      using ending = openEnding(signal, record.over.signal);
      if (record.accepted.includes(kind)) return await record.input.ask(request, ending.signal);
      tell({ case: "log", value: create(ToolLogSchema, { level: LogLevel.WARN, message: NOBODY_TO_ASK }) });
      return NOT_ANSWERED;
    };
    work({ tell, ask }, record.over.signal).then(end, (error: unknown) => end({ kind: "failed", error }));
    return record;
  }

  #retain(id: string, record: CallRecord, { outputJson, content }: ProvidedResult): void {
    const blocks = content.reduce((sum, { blockJson, data }) => sum + blockJson.length + data.length, 0);
    const length = record.events.reduce((sum, event) => sum + lengthOf(event), outputJson.length + blocks);
    this.#retention.add(length, () => {
      if (this.#records.get(id) === record) this.#records.delete(id);
    });
  }
}

/** Told to the server that asks in vain, and to whoever reads the log of the call. */
const NOT_ANSWERED = JSON.stringify({ action: "cancel" });
const NOBODY_TO_ASK =
  "the server asked a person, and was told that there is nobody to ask (cancel): whoever made the call asks nobody";

function lastEventOf(outcome: Executed): CallEvent {
  if (outcome.kind === "input") return { case: "inputRequired", value: outcome.required };
  return { case: "result", value: outcome.result };
}

/** A call that its server held open died with the connection. */
function refuseGone(): never {
  return refuse("unavailable", "the server that asked is gone: the call that it held open ended with its connection", {
    reason: "OUTCOME_UNKNOWN",
  });
}

function lengthOf({ value, case: kind }: CallEvent): number {
  if (kind === "log") return value.message.length + value.fieldsJson.length;
  return kind === "progress" ? value.message.length : 0;
}
