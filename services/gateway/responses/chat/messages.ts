import { z } from "zod";
import { inForm } from "#runtime/schema/zod-form.ts";
import type { Typed } from "../request/body.ts";
import { contentSchema } from "../request/content.ts";

const call = z.looseObject({
  type: z.literal("function", { error: 'must be "function"' }),
  id: z.string(),
  function: z.looseObject({ name: z.string(), arguments: z.string() }),
});

export const messageSchema = z.discriminatedUnion(
  "role",
  [
    z.looseObject({ role: z.enum(["system", "developer", "user"]), content: contentSchema }),
    z.looseObject({
      role: z.literal("assistant"),
      content: contentSchema.nullish(),
      tool_calls: z.array(call).nullish(),
    }),
    z.looseObject({ role: z.literal("tool"), tool_call_id: z.string(), content: contentSchema.nullish() }),
  ],
  { error: "must be system, developer, user, assistant or tool" },
);

type Message = z.infer<typeof messageSchema>;

/** What was said, as the input of a response. */
export interface Spoken {
  readonly input: Typed[];
  /** Of each item, the message that it is of. */
  readonly places: string[];
}

export function spokenFrom(messages: readonly Message[]): Spoken {
  const spoken = messages.flatMap((message, n) => {
    const place = `messages[${n}]`;
    return itemsFrom(message, place).map((item) => ({ item, place }));
  });
  return { input: spoken.map(({ item }) => item), places: spoken.map(({ place }) => place) };
}

function itemsFrom(message: Message, place: string): Typed[] {
  switch (message.role) {
    case "tool":
      return [{ type: "function_call_output", call_id: message.tool_call_id, output: contentOf(message, place) }];
    case "assistant": {
      const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: given } }) => ({
        ...{ type: "function_call", call_id: id, name, arguments: given },
      }));
      const { role, content } = message;
      return [...(content?.length ? [{ role, content }] : []), ...calls];
    }
    default:
      return [{ role: message.role, content: contentOf(message, place) }];
  }
}

function contentOf({ content }: Message, place: string): Typed["content"] {
  if (typeof content === "string") return content;
  return (content ?? []).map((part, n) => partFrom(part, `${place}.content[${n}]`));
}

const image = z.looseObject({ image_url: z.looseObject({ url: z.string() }) });
const file = z.looseObject({
  file: z.looseObject({ file_data: z.string({ error: "must be a data URL: files are not kept here" }) }),
});

/** All but images and files is the same there. */
function partFrom(part: Typed, place: string): Typed {
  if (part.type === "image_url") return { type: "input_image", image_url: inForm(image, part, place).image_url.url };
  return part.type === "file" ? { ...inForm(file, part, place).file, type: "input_file" } : part;
}
