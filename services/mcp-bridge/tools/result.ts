import { create } from "@bufbuild/protobuf";
import {
  type ProvidedContent,
  ProvidedContentSchema,
  type ProvidedResult,
  ProvidedResultSchema,
} from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import { errorResult } from "#runtime/results/error-result.ts";
import { toolJsonFrom } from "#runtime/schema/json/json-size.ts";
import { isObject } from "#runtime/schema/json-object.ts";

/** As a server gave it: no field needs to be of the form that MCP wants. */
type Answer = Readonly<Record<string, unknown>>;
type Block = Readonly<Record<string, unknown>>;

/**
 * What a server answered, as one JSON text: its structured content; else its text, as JSON if it is JSON, and as a string if
 * not (several texts are lines of one); else, where there is more than text, the whole content without its bytes. What that text
 * does not tell stands beside it, block by block.
 */
export function resultFromAnswer(answer: Answer, redact = (text: string) => text): ProvidedResult {
  const { structuredContent: structured } = answer;
  const isError = answer.isError === true;
  const blocks = blocksIn(answer.content);
  const words = blocks.flatMap(({ type, text }) => (type === "text" && typeof text === "string" ? [text] : []));
  const texts = words.length === blocks.length ? words : undefined; // undefined when there is anything but text
  const content = isTold(blocks, texts, structured) ? [] : blocks.map(contentFrom);
  const outputJson = isError ? errorOf(answer, words, texts) : outputOf(structured, texts, content);
  if (isError) for (const block of content) block.blockJson = redact(block.blockJson);
  return create(ProvidedResultSchema, {
    outputJson: isError ? redact(outputJson) : outputJson,
    isError,
    content,
    metaJson: metaOf(answer._meta),
  });
}

function outputOf(structured: unknown, texts: string[] | undefined, content: readonly ProvidedContent[]): string {
  if (structured !== undefined && structured !== null) return JSON.stringify(structured);
  if (texts === undefined) return `{"content":[${content.map(({ blockJson }) => blockJson).join(",")}]}`;
  const [only] = texts;
  return texts.length === 1 && only !== undefined && isJson(only) ? only : JSON.stringify(texts.join("\n"));
}

function errorOf({ structuredContent }: Answer, words: string[], texts: string[] | undefined): string {
  if (words.length > 0) return errorResult(words.join("\n")).outputJson;
  if (isObject(structuredContent)) return errorResult(JSON.stringify(structuredContent)).outputJson;
  return errorResult(texts === undefined ? "the tool failed; see its content" : "the tool failed without saying why")
    .outputJson;
}

/** A text alone is a block, too. */
function blocksIn(content: unknown): Block[] {
  const list = Array.isArray(content) ? content : [content ?? []].flat();
  return list.map((block) => (isObject(block) ? block : { type: "text", text: textOf(block) }));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Whether the JSON text of the result says all that the blocks say. */
function isTold(blocks: readonly Block[], texts: string[] | undefined, structured: unknown): boolean {
  const isPlain = blocks.every(({ type: _, text: __, annotations, _meta, ...more }) => {
    const beside = [annotations, _meta, ...Object.values(more)];
    return beside.every((value) => value === undefined || value === null);
  });
  if (texts === undefined || !isPlain) return false;
  if (structured === undefined || structured === null || texts.length === 0) return true;
  const [only] = texts;
  return texts.length === 1 && only !== undefined && isJson(only) && isSame(only, structured);
}

function isSame(text: string, structured: unknown): boolean {
  const told = JSON.stringify(structured);
  return text.trim() === told || JSON.stringify(JSON.parse(text)) === told;
}

function contentFrom(block: Block): ProvidedContent {
  const { data, resource, ...rest } = block;
  if (typeof data === "string") return withBytes(rest, data);
  if (!isObject(resource) || typeof resource.blob !== "string") return withBytes(block, "");
  const { blob, ...about } = resource;
  return withBytes({ ...rest, resource: about }, blob as string);
}

function withBytes(block: Block, base64: string): ProvidedContent {
  return create(ProvidedContentSchema, { blockJson: JSON.stringify(block), data: Buffer.from(base64, "base64") });
}

/** What MCP itself keeps there says nothing of the answer. */
function metaOf(meta: unknown): string {
  const told = Object.entries(isObject(meta) ? meta : {}).filter(
    ([key]) => !key.startsWith("io.modelcontextprotocol/"),
  );
  return told.length > 0 ? JSON.stringify(Object.fromEntries(told)) : "";
}

/** The way in which a JSON text can begin: most texts are none, and an error that nobody reads costs more than the call. */
const JSON_START = /^\s*(?:[[{"\-\d]|true|false|null)/;

function isJson(text: string): boolean {
  return JSON_START.test(text) && toolJsonFrom(text) !== undefined;
}
