/**
 * Thoughts go back in the form in which they came. The package says `reasoning_content` for all of them, which is refused by servers
 * that call them `reasoning`, as Groq and Cerebras do, or have them among the parts of the content, as Mistral has.
 */

import type { LanguageModelV4, LanguageModelV4Message, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { fieldsOf } from "#runtime/schema/json-object.ts";
import { streamingModel } from "../late-model.ts";

/** The package adds the options of this name to a message. */
const OPTIONS = "openaiCompatible";

type Form = "reasoning" | "content";

/** The model, whose thoughts are noted with a form of theirs. */
export function keepingThoughts(model: LanguageModelV4): LanguageModelV4 {
  return streamingModel(model, async (call) => {
    const prompt = call.prompt.map(withThoughts);
    const { stream } = await model.doStream({ ...call, prompt, includeRawChunks: true });
    let form: Form | undefined;
    const noted = new TransformStream<LanguageModelV4StreamPart, LanguageModelV4StreamPart>({
      transform(part, sink) {
        if (part.type === "raw") form ??= formInChunk(part.rawValue);
        else if (part.type !== "reasoning-start" || form === undefined) sink.enqueue(part);
        else sink.enqueue({ ...part, providerMetadata: { [OPTIONS]: { form } } });
      },
    });
    return { stream: stream.pipeThrough(noted) };
  });
}

function formInChunk(chunk: unknown): Form | undefined {
  const { choices } = fieldsOf(chunk);
  const { reasoning_content, reasoning, content } = fieldsOf(Array.isArray(choices) ? fieldsOf(choices[0]).delta : {});
  if (Array.isArray(content)) return "content";
  return reasoning && !reasoning_content ? "reasoning" : undefined;
}

type Part = Extract<LanguageModelV4Message, { role: "assistant" }>["content"][number];

const formOf = (part: Part) => (part.type === "reasoning" ? part.providerOptions?.[OPTIONS]?.form : undefined);

function withThoughts(message: LanguageModelV4Message): LanguageModelV4Message {
  if (message.role !== "assistant") return message;
  const form = message.content.map(formOf).find((one) => one !== undefined);
  if (form === undefined) return message;
  const content = message.content.filter(({ type }) => type !== "reasoning");
  const text = message.content.map((part) => (part.type === "reasoning" ? part.text : "")).join("");
  const thinking = { type: "thinking", thinking: [{ type: "text", text }] };
  const said = content.flatMap((part) => (part.type === "text" ? [{ type: "text", text: part.text }] : []));
  const fields = form === "content" ? { content: [thinking, ...said] } : { reasoning: text };
  return { ...message, content, providerOptions: { [OPTIONS]: fields } };
}
