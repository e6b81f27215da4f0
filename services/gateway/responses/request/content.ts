import { extname } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { z } from "zod";
import type { ContentPartSchema, FileSchema } from "#gen/toolbus/content/v1/content_pb.ts";
import { refuseField } from "#runtime/failure/failure.ts";
import { inForm } from "#runtime/schema/zod-form.ts";

export type ContentPart = MessageInitShape<typeof ContentPartSchema>;
type FileSource = MessageInitShape<typeof FileSchema>["source"];

/** What a message or an output holds. */
export const contentSchema = z.union([z.string(), z.array(z.looseObject({ type: z.string() }))], {
  error: "must be a text or a list of parts",
});
export type Content = z.infer<typeof contentSchema>;
type Part = Exclude<Content, string>[number];

/** What a user says or a function answers: texts, images, documents. */
export function contentFrom(content: Content, place: string): ContentPart[] {
  if (typeof content === "string") return [{ part: { case: "text", value: content } }];
  return content.map((part, n) => partFrom(part, `${place}[${n}]`));
}

/** What stands where there are texts only. */
export function textFrom(content: Content, place: string): string {
  if (typeof content === "string") return content;
  return content.map((part, n) => textOfPart(part, `${place}.content[${n}]`)).join("\n");
}

function textOfPart(part: Part, place: string): string {
  if (part.type === "refusal") return inForm(z.looseObject({ refusal: z.string() }), part, place).refusal;
  if (!/^(input_text|output_text|text)$/.test(part.type))
    refuseField(`${place}.type`, `${JSON.stringify(part.type)} is no content that is known here`);
  return inForm(z.looseObject({ text: z.string() }), part, place).text;
}

const image = z.looseObject({
  image_url: z.string({ error: "must be an address or a data URL: files are not kept here" }),
});
const file = z.looseObject({
  filename: z.string().nullish(),
  file_data: z.string().nullish(),
  file_url: z.string().nullish(),
});

function partFrom(part: Part, place: string): ContentPart {
  if (part.type === "input_image") {
    const { image_url: url } = inForm(image, part, place);
    return filePart(readUrl(url, `${place}.image_url`), { mediaType: "image/*", place: `${place}.image_url` });
  }
  if (part.type !== "input_file") return { part: { case: "text", value: textOfPart(part, place) } };
  const { filename, file_data: data, file_url: url } = inForm(file, part, place);
  const field = data ? "file_data" : "file_url";
  const given = data || url || refuseField(place, "needs `file_data` or `file_url`: files are not kept here");
  const mediaType = typeOfName(filename ?? given);
  const isBare = data && !data.startsWith("data:");
  const source = isBare
    ? { mediaType, source: bytesOf(data, `${place}.${field}`) }
    : readUrl(given, `${place}.${field}`);
  return filePart(source, { mediaType, filename: filename ?? "", place: `${place}.${field}` });
}

interface Read {
  readonly mediaType?: string | undefined;
  readonly source: NonNullable<FileSource>;
}

interface Described {
  readonly mediaType: string | undefined;
  readonly filename?: string;
  readonly place: string;
}

/** A text is told as text, which every model takes. */
function filePart(
  { mediaType: told, source }: Read,
  { mediaType: guessed, filename = "", place }: Described,
): ContentPart {
  const mediaType = told ?? guessed ?? refuseField(place, "does not say of which media type it is: send a data URL");
  if (source.case !== "data" || !/^(text\/|application\/json$)/.test(mediaType))
    return { part: { case: "file", value: { mediaType, filename, source } } };
  const text = Buffer.from(source.value).toString("utf8");
  return { part: { case: "text", value: `[File ${filename}]\n${text}` } };
}

function readUrl(url: string, place: string): Read {
  const [, mediaType, data] = /^data:([^;,]+)(?:;[^,]*)?;base64,(.*)$/s.exec(url) ?? [];
  if (mediaType !== undefined && data !== undefined) return { mediaType, source: bytesOf(data, place) };
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    refuseField(place, "must be an address (https://…) or a data URL in base64");
  return { source: { case: "url", value: url } };
}

function bytesOf(base64: string, place: string): NonNullable<FileSource> {
  if (/[^\sA-Za-z0-9+/=_-]/.test(base64)) refuseField(place, "is no base64");
  return { case: "data", value: Buffer.from(base64, "base64") };
}

/** What stands behind the path of an address is no ending. */
function typeOfName(name: string): string | undefined {
  const [path = ""] = name.split(/[?#]/, 1);
  return TYPES.get(extname(path).toLowerCase()) ?? TYPES.get(extname(name).toLowerCase());
}

const TYPES: ReadonlyMap<string, string> = new Map([
  [".pdf", "application/pdf"],
  [".txt", "text/plain"],
  [".md", "text/markdown"],
  [".csv", "text/csv"],
  [".json", "application/json"],
]);
