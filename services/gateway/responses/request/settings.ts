import type { MessageInitShape } from "@bufbuild/protobuf";
import { z } from "zod";
import { type ModelSettingsSchema, ReasoningEffort } from "#gen/toolbus/run/v1/model_settings_pb.ts";
import { refuseField } from "#runtime/failure/failure.ts";
import { inForm } from "#runtime/schema/zod-form.ts";
import type { CreateBody, effort } from "./body.ts";

type Effort = Uppercase<z.infer<typeof effort>>;
type Settings = MessageInitShape<typeof ModelSettingsSchema>;

const jsonSchemaFormat = z.looseObject({
  schema: z.record(z.string(), z.unknown()),
  name: z.string().nullish(),
  description: z.string().nullish(),
  strict: z.boolean().nullish(),
});

/** What the request asks of the agent's model. */
export function modelSettingsFrom(body: CreateBody): Settings {
  const { temperature, top_p: topP, presence_penalty: presence, frequency_penalty: frequency } = body;
  const { max_output_tokens: maxOutputTokens, reasoning, text, stop } = body;
  const format = text?.format;
  return {
    ...(typeof temperature === "number" && { temperature }),
    ...(typeof topP === "number" && { topP }),
    ...(typeof presence === "number" && { presencePenalty: presence }),
    ...(typeof frequency === "number" && { frequencyPenalty: frequency }),
    ...(typeof maxOutputTokens === "number" && { maxOutputTokens }),
    stopSequences: typeof stop === "string" ? [stop] : (stop ?? []),
    ...(reasoning?.effort && { reasoningEffort: ReasoningEffort[reasoning.effort.toUpperCase() as Effort] }),
    ...(format && format.type !== "text" && { jsonOutput: jsonOutputFrom(format) }),
  };
}

function jsonOutputFrom(format: { type?: string | undefined }): NonNullable<Settings["jsonOutput"]> {
  if (format.type === "json_object") return {};
  if (format.type !== "json_schema")
    refuseField("text.format.type", `${JSON.stringify(format.type)} is no format that is known here`);
  const { schema, name, description, strict } = inForm(jsonSchemaFormat, format, "text.format");
  const told = { name: name ?? "", description: description ?? "", strict: strict ?? false };
  return { ...told, schemaJson: JSON.stringify(schema) };
}
