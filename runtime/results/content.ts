import type { ResultContent } from "#gen/toolbus/tool/v1/tool_pb.ts";

/** A block of a result; one whose bytes are not stored has no reference. */
type Block = Pick<ResultContent, "blockJson"> & Partial<Pick<ResultContent, "storedReference" | "size">>;

/** A block as one JSON text, with where its bytes are. */
export function jsonOfBlock({ blockJson, storedReference = "", size = 0n }: Block): string {
  if (storedReference === "") return blockJson;
  const told = JSON.stringify({ storedReference, bytes: Number(size) });
  return `${blockJson.slice(0, -1)},${told.slice(1)}`;
}

/** All blocks of a result as its JSON text, where the blocks are the result. */
export function jsonOfBlocks(blocks: readonly Block[]): string {
  return `{"content":[${blocks.map(jsonOfBlock).join(",")}]}`;
}
