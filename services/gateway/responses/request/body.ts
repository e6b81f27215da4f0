import { z } from "zod";
import { refuseField } from "#runtime/failure/failure.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { inForm } from "#runtime/schema/zod-form.ts";

/** Its other fields are read by its type. */
const typed = z.looseObject({ type: z.string().optional() });
export const effort = z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]);

const noLogprobs = { error: "log probabilities are not known here" };
const included = z.string().refine((name) => name !== "message.output_text.logprobs", noLogprobs);
const stopText = z.string().min(1).max(1_024);

/** What a request to create a response may hold. What is not named here changes nothing, and is not read. */
export const bodySchema = z.looseObject({
  model: z.string({ error: "must name an agent" }).min(1, "must name an agent"),
  input: z.union([z.string(), z.array(typed)], { error: "must be a text or a list of items" }).nullish(),
  instructions: z.string().nullish(),
  previous_response_id: z.string().nullish(),
  stream: z.boolean().nullish(),
  background: z.boolean().nullish(),
  store: z.boolean().nullish(),
  metadata: z.record(z.string().min(1).max(64), z.string().max(512)).nullish(),
  tools: z.array(typed).nullish(),
  tool_choice: z.union([z.enum(["none", "auto", "required"]), typed]).nullish(),
  allowed_tools: z.array(z.string()).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  max_tool_calls: z.uint32().min(1).nullish(),
  max_output_tokens: z.uint32().min(1).nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  stop: z.union([stopText, z.array(stopText).max(16)], { error: "must be a text or a list of texts" }).nullish(),
  text: z.looseObject({ format: typed.nullish() }).nullish(),
  reasoning: z.looseObject({ effort: effort.nullish(), summary: z.string().nullish() }).nullish(),
  top_logprobs: z.literal([false, 0], noLogprobs).nullish(),
  include: z.array(included).nullish(),
  truncation: z.string().nullish(),
  prompt_cache_key: z.string().nullish(),
  safety_identifier: z.string().nullish(),
  user: z.string().nullish(),
});

export type CreateBody = z.infer<typeof bodySchema>;
export type Typed = z.infer<typeof typed>;

export function parseBody(value: unknown): CreateBody {
  for (const [field, message] of Object.entries(UNSERVED)) {
    if (isObject(value) && value[field] !== undefined && value[field] !== null) refuseField(field, message);
  }
  const body = inForm(bodySchema, value);
  requireOwnMetadata(body.metadata);
  return body;
}

export function requireOwnMetadata(metadata: CreateBody["metadata"]): void {
  const names = Object.keys(metadata ?? {});
  if (names.length > 16) refuseField("metadata", "has more than 16 entries");
  const own = names.find((key) => key.startsWith("toolbus."));
  if (own !== undefined) refuseField(`metadata.${own}`, 'names that begin with "toolbus." are not for clients');
}

/** What would change the answer, and has no counterpart here. */
const UNSERVED: Readonly<Record<string, string>> = {
  conversation: "conversations are chained by previous_response_id here: leave conversation out",
  prompt: "there are no stored prompts here: an agent has its own instructions, and `instructions` adds to them",
};
