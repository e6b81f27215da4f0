import type { LanguageModelV4Message, LanguageModelV4ToolResultOutput } from "@ai-sdk/provider";

export type Output = LanguageModelV4ToolResultOutput;
export type OutputPart = Extract<Output, { type: "content" }>["value"][number];

/** The message with its results of several parts in another form. */
export function withOutputs(
  message: LanguageModelV4Message,
  outputFrom: (parts: readonly OutputPart[]) => Output,
): LanguageModelV4Message {
  if (message.role !== "tool") return message;
  const content = message.content.map((part) => {
    if (part.type !== "tool-result" || part.output.type !== "content") return part;
    return { ...part, output: outputFrom(part.output.value) };
  });
  return { ...message, content };
}
