import { faultOf } from "../http/ended-response.ts";
import type { StreamEvent } from "../rendering/event-writer.ts";
import type { OutputItem, ResponseResource } from "../rendering/resource.ts";
import { BETWEEN_TEXTS, finishReasonOf, headOf, toolCallFrom, usageOf } from "./completion.ts";

/** The events of a response as the chunks of a completion. */
export class Chunks {
  readonly #includesUsage: boolean;
  #head: object = {};
  #between = "";
  #calls = 0;

  constructor(includesUsage: boolean) {
    this.#includesUsage = includesUsage;
  }

  from(event: StreamEvent): object[] {
    switch (event.type) {
      case "response.created":
        this.#head = headOf(event.response as ResponseResource, "chat.completion.chunk");
        return [this.#chunk({ role: "assistant", content: "", refusal: null })];
      case "response.output_text.delta":
        return [this.#chunk({ content: this.#textBetween() + event.delta })];
      case "response.output_text.done":
        this.#between = BETWEEN_TEXTS;
        return [];
      case "response.output_item.added":
        return this.#added(event.item as OutputItem);
      case "response.function_call_arguments.delta":
        return [this.#chunk({ tool_calls: [{ index: this.#calls - 1, function: { arguments: event.delta } }] })];
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        return this.#ended(event.response as ResponseResource);
      default:
        return [];
    }
  }

  #textBetween(): string {
    const between = this.#between;
    this.#between = "";
    return between;
  }

  #added(item: OutputItem): object[] {
    if (item.type !== "function_call") return [];
    this.#calls += 1;
    return [this.#chunk({ tool_calls: [{ index: this.#calls - 1, ...toolCallFrom(item) }] })];
  }

  #ended(response: ResponseResource): object[] {
    const error = faultOf(response);
    if (error !== undefined) return [{ error }];
    const last = this.#chunk({}, finishReasonOf(response));
    return this.#includesUsage ? [last, { ...this.#head, choices: [], usage: usageOf(response) }] : [last];
  }

  #chunk(delta: object, finishReason: string | null = null): object {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finishReason }];
    return { ...this.#head, choices, ...(this.#includesUsage && { usage: null }) };
  }
}
