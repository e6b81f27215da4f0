import { z } from "zod";
import { refuseField } from "#runtime/failure/failure.ts";
import { inForm } from "#runtime/schema/zod-form.ts";
import { bodySchema, type CreateBody, effort, requireOwnMetadata } from "../request/body.ts";
import { messageSchema, type Spoken, spokenFrom } from "./messages.ts";

const named = z.looseObject({ name: z.string() });
const described = named.extend({ description: z.string().nullish(), parameters: z.looseObject({}).nullish() });
const functionType = z.literal("function", { error: 'must be "function": an agent has its own tools' });
const toolNamed = z.looseObject({ type: functionType, function: named });
const allowedTools = z.looseObject({ mode: z.enum(["auto", "required"]), tools: z.array(toolNamed) });
const jsonSchema = z.looseObject({ name: z.string(), description: z.string().nullish(), schema: z.looseObject({}) });
const { model, stream, metadata, temperature, top_p, presence_penalty, frequency_penalty } = bodySchema.shape;
const { parallel_tool_calls, allowed_tools, max_output_tokens: tokens, stop, top_logprobs } = bodySchema.shape;
const unserved = (message: string) => z.literal([false, 0], { error: message }).nullish();

/** What a request for a completion may hold. What would change the answer and has no counterpart here is refused; all else is not read. */
const chatSchema = z.looseObject({
  ...{ model, stream, metadata, temperature, top_p, presence_penalty, frequency_penalty },
  ...{ parallel_tool_calls, allowed_tools, stop },
  messages: z.array(messageSchema).min(1),
  tools: z.array(z.looseObject({ type: functionType, function: described })).nullish(),
  tool_choice: z
    .union(
      [
        z.enum(["none", "auto", "required"]),
        toolNamed,
        z.looseObject({ type: z.literal("allowed_tools"), allowed_tools: allowedTools }),
      ],
      { error: 'must be "none", "auto", "required", a function by name, or allowed_tools' },
    )
    .nullish(),
  max_tokens: tokens,
  max_completion_tokens: tokens,
  reasoning_effort: effort.nullish(),
  response_format: z
    .discriminatedUnion(
      "type",
      [
        z.looseObject({ type: z.literal("text") }),
        z.looseObject({ type: z.literal("json_object") }),
        z.looseObject({ type: z.literal("json_schema"), json_schema: jsonSchema }),
      ],
      { error: 'must be "text", "json_object" or "json_schema"' },
    )
    .nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.literal(1, { error: "must be 1: a run has one answer" }).nullish(),
  ...{ logprobs: top_logprobs, top_logprobs },
  modalities: z.array(z.literal("text", { error: 'must be "text": agents do not speak' })).nullish(),
  audio: unserved("agents do not speak: leave audio out"),
  logit_bias: z.strictObject({}, { error: "there is no bias of tokens here" }).nullish(),
  functions: unserved("functions are offered as `tools` here"),
  function_call: unserved("functions are chosen by `tool_choice` here"),
  web_search_options: unserved("an agent has its own tools"),
});

type ChatBody = z.infer<typeof chatSchema>;

/** A request for a completion, as that for a response of which the same comes. */
export interface ChatRequest extends Pick<Spoken, "places"> {
  readonly body: CreateBody;
  readonly includesUsage: boolean;
}

export function parseChat(value: unknown): ChatRequest {
  const chat = inForm(chatSchema, value);
  requireOwnMetadata(chat.metadata);
  if (chat.stream_options && !chat.stream) refuseField("stream_options", "is for streams: set stream to true");
  const { stream, metadata, temperature, top_p, presence_penalty, frequency_penalty, parallel_tool_calls, stop } = chat;
  const { input, places } = spokenFrom(chat.messages);
  const { response_format: form } = chat;
  const format = form?.type === "json_schema" ? { ...form.json_schema, type: form.type } : form;
  const body: CreateBody = {
    ...{ model: chat.model, stream, metadata, parallel_tool_calls, allowed_tools: chat.allowed_tools, input },
    ...{ temperature, top_p, presence_penalty, frequency_penalty, stop },
    max_output_tokens: chat.max_completion_tokens ?? chat.max_tokens,
    tools: chat.tools?.map((tool) => ({ type: "function", ...tool.function })),
    tool_choice: choiceFrom(chat.tool_choice),
    ...(chat.reasoning_effort && { reasoning: { effort: chat.reasoning_effort } }),
    text: { format },
    store: false, // there is no door to what was told once
  };
  return { body, places, includesUsage: chat.stream_options?.include_usage ?? false };
}

function choiceFrom(choice: ChatBody["tool_choice"]): CreateBody["tool_choice"] {
  if (typeof choice !== "object" || choice === null) return choice;
  if (choice.type === "function") return functionNamed(choice);
  const { mode, tools } = choice.allowed_tools;
  return { type: "allowed_tools", mode, tools: tools.map(functionNamed) };
}

function functionNamed(tool: z.infer<typeof toolNamed>) {
  return { type: "function", name: tool.function.name };
}
