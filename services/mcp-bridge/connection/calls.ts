import { create } from "@bufbuild/protobuf";
import {
  type ExecuteToolResponse,
  ExecuteToolResponseSchema,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { boundedEvent } from "#runtime/results/bounded-event.ts";
import { providedResult } from "#runtime/results/provided-result.ts";
import { type Changes, createChanges, orAborted } from "../servers/changes.ts";
import type { Retention } from "./retention.ts";

export type CallEvent = ExecuteToolResponse["event"];

/** Executes a call; the signal aborts when nobody waits for it any more. */
export type CallWork = (tell: (event: CallEvent) => void, signal: AbortSignal) => Promise<ToolResult>;

type Outcome = { kind: "result"; result: ToolResult } | { kind: "failed"; error: unknown };

interface CallRecord {
  /** Progress and logs, of which only the last are kept. */
  events: CallEvent[];
  /** How many came before the first of `events`. */
  forgotten: number;
  outcome?: Outcome;
  readers: number;
  readonly abandoned: AbortController;
  readonly changes: Changes;
}

const MAX_EVENTS = 256;

/**
 * The calls of one connection. A second call under the same id joins the first, or is given its result for a while. A call
 * that nobody waits for any more is canceled. What failed is not kept: whether it may be repeated, others decide.
 */
export class Calls {
  readonly #records = new Map<string, CallRecord>();
  readonly #retention: Retention;
  #running = 0;

  constructor(retention: Retention) {
    this.#retention = retention;
  }

  /** Of calls that have not ended. */
  get running(): number {
    return this.#running;
  }

  /** The call's progress and logs, then its result; throws what the call failed with. */
  async *join(id: string, work: CallWork, signal: AbortSignal): AsyncGenerator<ExecuteToolResponse> {
    const record = this.#records.get(id) ?? this.#start(id, work);
    record.readers += 1;
    try {
      for (let seen = 0; ; ) {
        const changed = record.changes.next();
        for (seen = Math.max(seen, record.forgotten); seen < record.forgotten + record.events.length; seen++) {
          const event = record.events[seen - record.forgotten];
          if (event) yield create(ExecuteToolResponseSchema, { event });
        }
        const { outcome } = record;
        if (outcome?.kind === "failed") throw outcome.error;
        if (outcome) {
          yield create(ExecuteToolResponseSchema, { event: { case: "result", value: providedResult(outcome.result) } });
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
    this.#running -= 1;
    record.abandoned.abort(new Failure("canceled", "nobody waits for this call any more", { reason: "CANCELED" }));
  }

  #start(id: string, work: CallWork): CallRecord {
    this.#retention.forgetOld();
    const record: CallRecord = {
      events: [],
      forgotten: 0,
      readers: 0,
      abandoned: new AbortController(),
      changes: createChanges(),
    };
    this.#records.set(id, record);
    this.#running += 1;
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
      if (this.#records.get(id) === record) {
        this.#running -= 1;
        if (outcome.kind === "result") this.#retain(id, record, outcome.result);
        else this.#records.delete(id);
      }
      record.changes.tell();
    };
    work(tell, record.abandoned.signal).then(
      (result) => end({ kind: "result", result }),
      (error: unknown) => end({ kind: "failed", error }),
    );
    return record;
  }

  #retain(id: string, record: CallRecord, { outputJson }: ToolResult): void {
    const length = record.events.reduce((sum, event) => sum + lengthOf(event), outputJson.length);
    this.#retention.add(length, () => {
      if (this.#records.get(id) === record) this.#records.delete(id);
    });
  }
}

function lengthOf({ value, case: kind }: CallEvent): number {
  if (kind === "log") return value.message.length + value.fieldsJson.length;
  return kind === "progress" ? value.message.length : 0;
}
