import { type ContentBlock, isSpecType } from "@modelcontextprotocol/server";
import type { ResultContent } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { charactersUpTo } from "#runtime/results/utf8.ts";
import { fieldsOf, isObject } from "#runtime/schema/json-object.ts";
import { linkTo, type ResultReference, type StoredResults, uriOfResult } from "./stored-results.ts";

/** Clients of models refuse results of more than some 25,000 tokens. */
export const MAX_TEXT = 65_536;
/** All pictures of a result together: some clients refuse events of more than 1 MiB, as which base64 stands. */
const MAX_BYTES = 600 * 1_024;

export interface BlockForm {
  readonly results: StoredResults;
  readonly knowsLinks: boolean;
}

/** The blocks that a tool answered, with the bytes that are stored beside them, as far as a model takes them. */
export async function blocksFrom(content: readonly ResultContent[], form: BlockForm): Promise<ContentBlock[]> {
  let bytes = 0n;
  const blocks = content.map((block) => {
    if (JSON.parse(block.blockJson).type !== "text") bytes += block.size;
    return blockFrom(block, form, bytes <= MAX_BYTES);
  });
  return (await Promise.all(blocks)).flat().flatMap((block) => known(block, form));
}

async function blockFrom(content: ResultContent, form: BlockForm, hasRoom: boolean): Promise<unknown[]> {
  const { blockJson, storedReference, size } = content;
  const block: Record<string, unknown> = JSON.parse(blockJson);
  const said = `${block.type} of ${size} bytes`;
  if (typeof block.notKept === "string") return [textBlock(`${said}: ${block.notKept}`)];
  if (storedReference === "") return [block];
  const isText = block.type === "text";
  const reference: ResultReference = { case: "storedReference", value: storedReference, ...typeOf(block) };
  if (!isText && (!hasBytes(block) || !hasRoom)) return begun(said, reference, form);
  const read = form.results.readBytes(reference, isText ? MAX_TEXT : undefined);
  const bytes = await read.catch(() => undefined); // the call is over: whoever was told a fault would make it again
  if (bytes === undefined) return begun(said, reference, form);
  if (isText) {
    const text = charactersUpTo(Buffer.from(bytes), MAX_TEXT).toString();
    return size > bytes.length ? begun(text, reference, form) : [{ ...block, text }];
  }
  const base64 = Buffer.from(bytes).toString("base64");
  const { resource } = block;
  return [isObject(resource) ? { ...block, resource: { ...resource, blob: base64 } } : { ...block, data: base64 }];
}

/** Of what a block holds, as its tool says; a block of another kind is stored as JSON. */
function typeOf(block: Record<string, unknown>): Pick<ResultReference, "mimeType"> {
  if (block.type === "text") return { mimeType: "text/plain" };
  if (!hasBytes(block)) return {};
  const { mimeType } = { ...block, ...fieldsOf(block.resource) };
  const isType = typeof mimeType === "string" && /^[ -~]{1,255}$/.test(mimeType);
  return { mimeType: isType ? mimeType : "application/octet-stream" };
}

function hasBytes({ type, resource }: Record<string, unknown>): boolean {
  return type === "image" || type === "audio" || isObject(resource);
}

/** The beginning of something, and where the whole is. */
export function begun(beginning: string, reference: ResultReference, { knowsLinks }: BlockForm): ContentBlock[] {
  const text = textBlock(`${beginning}… (this is the beginning; the whole is the resource ${uriOfResult(reference)})`);
  return knowsLinks ? [text, linkTo(reference)] : [text];
}

export function textBlock(text: string): ContentBlock {
  return { type: "text", text };
}

/** A client that does not know a block refuses the whole answer. */
function known(block: unknown, { knowsLinks }: BlockForm): ContentBlock[] {
  if (!isSpecType.ContentBlock(block)) return [textBlock(JSON.stringify(block))];
  const isUnknown = block.type === "resource_link" && !knowsLinks;
  return isUnknown ? [textBlock(`${block.name}: ${block.uri}`)] : [block as ContentBlock];
}
