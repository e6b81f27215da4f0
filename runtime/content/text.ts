import { create } from "@bufbuild/protobuf";
import { type ContentPart, ContentPartSchema } from "#gen/toolbus/content/v1/content_pb.ts";

/** The content of a message that is one text; of an empty text it is empty. */
export function textContent(text: string): ContentPart[] {
  return text === "" ? [] : [create(ContentPartSchema, { part: { case: "text", value: text } })];
}

/** The texts of a message's content, each on lines of its own. */
export function textOfContent(content: readonly ContentPart[]): string {
  return content.flatMap(({ part }) => (part.case === "text" ? [part.value] : [])).join("\n");
}
