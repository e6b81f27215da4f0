import type { OutputItem, ResponseResource, ResponseUsage } from "../rendering/resource.ts";

/** Between what an agent says before it calls a tool, and what it says then: a completion has one text. */
export const BETWEEN_TEXTS = "\n\n";

/** The response as a completion. What the agent itself called, and what it thought, has no place in one. */
export function completionFrom(response: ResponseResource) {
  const texts = response.output.filter(({ type }) => type === "message").map(textOf);
  const calls = response.output.filter(({ type }) => type === "function_call").map(toolCallFrom);
  const content = texts.length > 0 ? texts.join(BETWEEN_TEXTS) : null;
  const message = { role: "assistant", content, refusal: null, ...(calls.length > 0 && { tool_calls: calls }) };
  return {
    ...headOf(response, "chat.completion"),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReasonOf(response) }],
    usage: usageOf(response),
  };
}

export function headOf({ id, created_at: created, model }: ResponseResource, object: string) {
  return { id: id.replace(/^resp_/, "chatcmpl-"), object, created, model };
}

export function finishReasonOf({ output, incomplete_details: details }: ResponseResource): string {
  if (details) return details.reason === "content_filter" ? "content_filter" : "length";
  return output.some(({ type }) => type === "function_call") ? "tool_calls" : "stop";
}

export function usageOf({ usage }: ResponseResource) {
  const used = usage as ResponseUsage;
  return {
    prompt_tokens: used.input_tokens,
    prompt_tokens_details: { cached_tokens: used.input_tokens_details.cached_tokens },
    completion_tokens: used.output_tokens,
    completion_tokens_details: used.output_tokens_details,
    total_tokens: used.total_tokens,
  };
}

function textOf({ content }: OutputItem): string {
  return (content as { text: string }[]).map(({ text }) => text).join("");
}

export function toolCallFrom({ call_id: id, name, arguments: given }: OutputItem) {
  return { id, type: "function", function: { name, arguments: given } };
}
