import type { Usage } from "#gen/toolbus/tool/v1/usage_pb.ts";

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

/** The spans of a run, by the events that begin and end them. */
export class Spans {
  readonly all: Span[] = [];
  /** Turns that are stored. */
  turnCount = 0;
  readonly #open = new Map<string, Span>();
  #nowMs = 0;
  #sequence = 0;

  get nowMs(): number {
    return this.#nowMs;
  }

  /** From here on, spans begin and end with this event; one without a time is as late as the one before. */
  reach(sequence: number, timeMs: number | undefined): void {
    this.#sequence = sequence;
    this.#nowMs = timeMs ?? this.#nowMs;
  }

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  open(id: string): Span | undefined {
    return this.#open.get(id);
  }

  add(id: string, kind: SpanKind, label: string, turn = this.turnCount): Span {
    const span: Span = {
      id,
      kind,
      label,
      turn,
      startMs: this.#nowMs,
      endMs: undefined,
      isFault: false,
      sequence: this.#sequence,
      input: "",
      output: "",
      usage: undefined,
      facts: {},
      progress: "",
      logs: [],
    };
    this.all.push(span);
    this.#open.set(id, span);
    return span;
  }

  end(id: string): Span | undefined {
    const span = this.#open.get(id);
    if (!span) return undefined;
    this.#open.delete(id);
    span.endMs = this.#nowMs;
    span.sequence = this.#sequence;
    return span;
  }

  note(label: string, facts: Record<string, string> = {}): Span {
    const span = this.add(`note-${this.#sequence}`, "note", label);
    Object.assign(span.facts, facts);
    this.end(span.id);
    return span;
  }

  /** The model is asked as soon as nothing else is awaited. */
  askModel(): void {
    const isAwaiting = [...this.#open.values()].some(({ kind }) => kind !== "model");
    if (isAwaiting || this.isOpen("model")) return;
    const turn = this.turnCount + 1;
    this.add("model", "model", `turn ${turn}`, turn);
  }

  endModel(id: string, label: string): Span {
    if (!this.isOpen("model")) this.add("model", "model", label);
    const span = this.end("model") as Span;
    return Object.assign(span, { id, label });
  }

  /** An answer of the model that never came is no span. */
  endAll(): void {
    for (const id of [...this.#open.keys()]) {
      const span = this.end(id);
      if (span?.kind === "model") this.all.splice(this.all.indexOf(span), 1);
    }
  }
}
