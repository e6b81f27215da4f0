import type { RunDelta, RunTextReplaced, TurnCommitted } from "#gen/toolbus/run/v1/run_event_pb.ts";
import type { FunctionCall, Item } from "#gen/toolbus/run/v1/run_pb.ts";
import { textOfContent } from "#runtime/content/text.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { EventWriter } from "./event-writer.ts";
import { SpokenItem, type SpokenKind } from "./spoken-item.ts";

/** Ends of an answer in its middle: without calls, the run ends with it. */
const CUT_OFF = ["length", "content-filter"];

type Part = { kind: SpokenKind; text: string } | { kind: "call"; call: FunctionCall };

/**
 * Renders one turn of the model: its thought and its text as they come, and all of it once it is committed.
 *
 * turn-rendering-1  What is sent live is the beginning of what the log will have. Where that is not sure, as after a missed delta, nothing
 *     more is sent before the commit, which has all.
 * turn-rendering-2  A new attempt at an answer that broke off goes on where both begin alike. Where the client has seen something else, no
 *     event could take it back: its stream breaks, and says so.
 * turn-rendering-3  Calls are sent from the commit, which says whose they are.
 */
export class TurnRenderer {
  readonly #writer: EventWriter;
  readonly #place: string;
  /** What was sent: all but the last are done. */
  readonly #items: SpokenItem[] = [];
  #attempt = 0;
  #next = 0;
  #isLive = true;
  #spoken: { kind: SpokenKind; text: string }[] = [];

  constructor(writer: EventWriter, place: string) {
    this.#writer = writer;
    this.#place = place;
  }

  delta({ attempt, index, delta }: RunDelta): void {
    if (attempt !== this.#attempt) this.#anew(attempt, 0);
    if (index !== this.#next) this.#isLive = false; // turn-rendering-1
    this.#next = index + 1;
    if (delta.case === "arguments") this.#isLive = false; // turn-rendering-3
    if (!this.#isLive || (delta.case !== "text" && delta.case !== "reasoning")) return;
    this.#grow(delta.case === "text" ? "message" : "reasoning", delta.value);
  }

  /** The text so far, of which deltas were missed, or of another attempt. */
  replaced({ attempt, deltaCount, text, textOnly }: RunTextReplaced): void {
    this.#anew(attempt, deltaCount);
    if (!textOnly) return; // turn-rendering-1
    this.#isLive = true;
    this.#grow("message", text);
  }

  #anew(attempt: number, missed: number): void {
    this.#attempt = attempt;
    this.#next = missed;
    this.#spoken = [];
    this.#isLive = missed === 0;
  }

  /** Gives the calls, with their places. */
  commit({ items, finishReason }: TurnCommitted): { call: FunctionCall; place: string }[] {
    const parts = partsFrom(items);
    if (parts.length < this.#items.length) breakOff();
    const isCutOff = CUT_OFF.includes(finishReason) && parts.every(({ kind }) => kind !== "call");
    return parts.flatMap((part, n) => {
      if (part.kind === "call")
        return this.#items[n] ? breakOff() : [{ call: part.call, place: `${this.#place}_${n}` }];
      const sent = this.#items[n];
      const isDone = sent !== undefined && n < this.#items.length - 1;
      const isBegun = sent?.kind === part.kind && (isDone ? part.text === sent.text : part.text.startsWith(sent.text));
      if (sent !== undefined && !isBegun) breakOff(); // turn-rendering-2
      const status = isCutOff && n === parts.length - 1 ? "incomplete" : "completed";
      if (!isDone) (sent ?? this.#open(part.kind, n)).finish(part.text, status);
      return [];
    });
  }

  /** The run ended in its middle: the log has so much of the text. */
  cutOff(text: string | undefined): void {
    const open = this.#items.at(-1);
    if (open?.kind === "reasoning") open.finish(open.text, "incomplete");
    else if (open !== undefined || text) (open ?? this.#open("message", 0)).finish(text ?? "", "incomplete");
  }

  #grow(kind: SpokenKind, text: string): void {
    if (text === "") return;
    const last = this.#spoken.at(-1);
    if (last?.kind === kind) last.text += text;
    else this.#spoken.push({ kind, text });
    if (this.#spoken.length > 1 && kind === "reasoning")
      this.#isLive = false; // what comes back may join what was before
    else this.#emitSpoken();
  }

  /** An earlier attempt may have sent the beginning. */
  #emitSpoken(): void {
    for (const [n, { kind, text }] of this.#spoken.entries()) {
      const sent = this.#items[n];
      const fits =
        sent === undefined || (sent.kind === kind && (text.startsWith(sent.text) || sent.text.startsWith(text)));
      if (!fits) {
        this.#isLive = false; // turn-rendering-2
        return;
      }
      const isLast = n === this.#spoken.length - 1;
      const isDone = sent !== undefined && n < this.#items.length - 1;
      if (isDone) continue;
      const item = sent ?? this.#open(kind, n);
      if (isLast) item.grow(text);
      else item.finish(text);
    }
  }

  #open(kind: SpokenKind, n: number): SpokenItem {
    const item = new SpokenItem(this.#writer, kind, `${this.#place}_${n}`);
    this.#items.push(item);
    return item;
  }
}

/** Texts, or thoughts, that follow one another are one: nothing says live where one ends. */
function partsFrom(items: readonly Item[]): Part[] {
  const parts: Part[] = [];
  for (const { item } of items) {
    if (item.case === "functionCall") parts.push({ kind: "call", call: item.value });
    if (item.case !== "message" && item.case !== "reasoning") continue;
    const text = item.case === "message" ? textOfContent(item.value.content) : item.value.text;
    const last = parts.at(-1);
    if (text === "") continue;
    if (last?.kind === item.case) last.text += text;
    else parts.push({ kind: item.case, text });
  }
  return parts;
}

function breakOff(): never {
  return refuse("aborted", "the model's answer broke off and was given anew: what was streamed of it does not hold", {
    reason: "ANSWER_REPLACED",
  });
}
