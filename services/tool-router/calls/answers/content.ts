import { create } from "@bufbuild/protobuf";
import type { ProvidedContent } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import { type ResultContent, ResultContentSchema, type ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { jsonOfBlocks } from "#runtime/results/content.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { whereFull } from "./where-full.ts";

/** A longer text is stored, as bytes always are. */
const MAX_BLOCK_BYTES = 16 * 1_024;
/** What all blocks of a result take together. */
const MAX_CONTENT_BYTES = 64 * 1_024;

type Store = (whole: string | Uint8Array) => Promise<string>;

export interface ProvidedAnswer extends Pick<ToolResult, "outputJson" | "metaJson"> {
  readonly provided: readonly ProvidedContent[];
}

/**
 * Stores what a message does not hold of the blocks of a result, and writes the references into its JSON text where that is
 * the blocks. What finds no room is told without it: the call has happened.
 */
export async function storeContent(
  { provided, outputJson, metaJson }: ProvidedAnswer,
  store: Store,
): Promise<Pick<ToolResult, "content" | "outputJson" | "metaJson">> {
  const isMetaLarge = Buffer.byteLength(metaJson) > MAX_BLOCK_BYTES;
  const content: ResultContent[] = isMetaLarge ? [await stored({ type: "_meta" }, metaJson, store)] : [];
  let bytes = 0;
  for (const [index, block] of provided.entries()) {
    const held = await heldBlock(block, store);
    bytes += Buffer.byteLength(held.blockJson) + held.storedReference.length;
    if (bytes > MAX_CONTENT_BYTES) {
      const rest = provided.slice(index);
      content.push(await stored({ type: "more", count: rest.length }, `[${rest.map(wholeOf).join(",")}]`, store));
      break;
    }
    content.push(held);
  }
  return {
    content,
    outputJson: outputJson === jsonOfBlocks(provided) ? jsonOfBlocks(content) : outputJson,
    metaJson: isMetaLarge ? "" : metaJson,
  };
}

async function heldBlock({ blockJson, data }: ProvidedContent, store: Store): Promise<ResultContent> {
  if (data.length > 0) return stored(JSON.parse(blockJson), data, store);
  if (Buffer.byteLength(blockJson) <= MAX_BLOCK_BYTES) return create(ResultContentSchema, { blockJson });
  const { text, ...block } = JSON.parse(blockJson);
  const isText = typeof text === "string" && Buffer.byteLength(JSON.stringify(block)) <= MAX_BLOCK_BYTES;
  return isText ? stored(block, text, store) : stored({ type: block.type }, blockJson, store);
}

async function stored(block: object, whole: string | Uint8Array, store: Store): Promise<ResultContent> {
  const size = BigInt(Buffer.byteLength(whole));
  const held = await store(whole).then(
    (storedReference) => ({ blockJson: JSON.stringify(block), storedReference }),
    whereFull(({ message }) => ({ blockJson: JSON.stringify({ ...block, notKept: message }) })),
  );
  return create(ResultContentSchema, { ...held, size });
}

function wholeOf({ blockJson, data }: ProvidedContent): string {
  if (data.length === 0) return blockJson;
  const block = JSON.parse(blockJson);
  const base64 = Buffer.from(data).toString("base64");
  const isResource = isObject(block.resource);
  return JSON.stringify(
    isResource ? { ...block, resource: { ...block.resource, blob: base64 } } : { ...block, data: base64 },
  );
}
