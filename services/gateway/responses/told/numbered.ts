import type { OutputItem } from "./resource.ts";

/** An event of a stream, with its place in it. */
export interface StreamEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly [field: string]: unknown;
}

/** Numbers what is told of a response, its events and its items of output. */
export class Numbered {
  readonly output: OutputItem[] = [];
  #events: StreamEvent[] = [];
  #next = 0;

  tell(type: string, fields: object): void {
    this.#events.push({ type, sequence_number: this.#next, ...fields });
    this.#next += 1;
  }

  /** Gives the index of an item that is told of from now on. */
  add(item: OutputItem): number {
    const index = this.output.push(item) - 1;
    this.tell("response.output_item.added", { output_index: index, item });
    return index;
  }

  done(index: number, item: OutputItem): void {
    this.output[index] = item;
    this.tell("response.output_item.done", { output_index: index, item });
  }

  /** What was told since it was asked last. */
  take(): StreamEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }
}
