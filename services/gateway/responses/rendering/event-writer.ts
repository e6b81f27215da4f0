import type { OutputItem } from "./resource.ts";

/** An event of a stream, with its place in it. */
export interface StreamEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly [field: string]: unknown;
}

/** Numbers the events of a response, and its items of output. */
export class EventWriter {
  readonly output: OutputItem[] = [];
  #events: StreamEvent[] = [];
  #next = 0;

  emit(type: string, fields: object): void {
    this.#events.push({ type, sequence_number: this.#next, ...fields });
    this.#next += 1;
  }

  /** Gives the index of a new item. */
  add(item: OutputItem): number {
    const index = this.output.push(item) - 1;
    this.emit("response.output_item.added", { output_index: index, item });
    return index;
  }

  done(index: number, item: OutputItem): void {
    this.output[index] = item;
    this.emit("response.output_item.done", { output_index: index, item });
  }

  /** The events since the last look. */
  take(): StreamEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }
}
