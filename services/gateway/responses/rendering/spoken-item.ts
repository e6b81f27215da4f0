import type { EventWriter } from "./event-writer.ts";
import { Pieces } from "./pieces/pieces.ts";
import type { OutputItem } from "./resource.ts";

export type SpokenKind = "message" | "reasoning";

/** What the two kinds of spoken items are called in the stream. */
interface Wording {
  readonly prefix: string;
  readonly part: string;
  readonly text: string;
  readonly indexField: "content_index" | "summary_index";
  readonly partOf: (text: string) => object;
  readonly itemOf: (id: string, status: string, parts: object[]) => OutputItem;
  /** What the events of its text carry beside it. */
  readonly beside: object;
}

const WORDINGS: Record<SpokenKind, Wording> = {
  message: {
    prefix: "msg",
    part: "response.content_part",
    text: "response.output_text",
    indexField: "content_index",
    partOf: (text) => ({ type: "output_text", text, annotations: [], logprobs: [] }),
    itemOf: (id, status, content) => ({ type: "message", id, status, role: "assistant", content }),
    beside: { logprobs: [] },
  },
  reasoning: {
    prefix: "rs",
    part: "response.reasoning_summary_part",
    text: "response.reasoning_summary_text",
    indexField: "summary_index",
    partOf: (text) => ({ type: "summary_text", text }),
    itemOf: (id, status, summary) => ({ type: "reasoning", id, status, summary }),
    beside: {},
  },
};

/** Renders a message or a thought of the model as it grows. */
export class SpokenItem {
  readonly kind: SpokenKind;
  readonly #writer: EventWriter;
  readonly #wording: Wording;
  readonly #id: string;
  readonly #index: number;
  readonly #pieces = new Pieces();
  #text = "";

  constructor(writer: EventWriter, kind: SpokenKind, place: string) {
    this.kind = kind;
    this.#writer = writer;
    this.#wording = WORDINGS[kind];
    this.#id = `${this.#wording.prefix}_${place}`;
    this.#index = writer.add(this.#wording.itemOf(this.#id, "in_progress", []));
    this.#emit(`${this.#wording.part}.added`, { part: this.#wording.partOf("") });
  }

  /** As far as it was sent. */
  get text(): string {
    return this.#text;
  }

  /** Sends what the text has more than was sent. */
  grow(text: string, isWhole = false): void {
    for (const delta of this.#pieces.of(text, isWhole)) {
      this.#text += delta;
      this.#emit(`${this.#wording.text}.delta`, { delta, ...this.#wording.beside });
    }
  }

  finish(text: string, status: "completed" | "incomplete" = "completed"): void {
    if (text.startsWith(this.#text)) this.grow(text, true);
    const part = this.#wording.partOf(text);
    this.#emit(`${this.#wording.text}.done`, { text, ...this.#wording.beside });
    this.#emit(`${this.#wording.part}.done`, { part });
    this.#writer.done(this.#index, this.#wording.itemOf(this.#id, status, [part]));
  }

  #emit(type: string, fields: object): void {
    const place = { item_id: this.#id, output_index: this.#index, [this.#wording.indexField]: 0 };
    this.#writer.emit(type, { ...place, ...fields });
  }
}
