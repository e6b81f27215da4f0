import { hash } from "node:crypto";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { EnvironmentReader } from "../config/environment.ts";
import { digestOfReference } from "./store/store.ts";
import { charactersUpTo } from "./utf8.ts";

/** Where the whole of a shortened result is, or why it could not be stored. */
type Rest = { readonly storedReference: string; unkept?: never } | { readonly unkept: string; storedReference?: never };
type Result = Pick<ToolResult, "outputJson" | "isError" | "storedReference">;

/** The most that `read_result` gives at once, in bytes. */
export const maxPartBytes = 32 * 1_024;

export function maxResultBytesFromReader(reader: EnvironmentReader): number {
  return reader.integer("TOOLBUS_MAX_RESULT_BYTES", {
    meaning: "A larger result is stored whole and shown shortened.",
    unit: "bytes",
    default: 256 * 1_024,
    min: 1_024,
    max: 512 * 1_024,
  });
}

/** LOOP-8: a result that is larger is stored whole, and what is shown of it has its reference. */
export async function boundedResult<R extends Result>(
  result: R,
  maxBytes: number,
  store: (whole: string) => Promise<string>,
): Promise<R> {
  if (Buffer.byteLength(result.outputJson) <= maxBytes) return result;
  const storedReference = await store(result.outputJson);
  return { ...shortenedResult(result, maxBytes, { storedReference }), storedReference };
}

/** Its beginning, and how the rest is read. */
export function shortenedResult<R extends Result>(result: R, maxBytes: number, rest: Rest): R {
  return { ...result, outputJson: shortenedJson(result, Math.floor(maxBytes / 4), rest) };
}

/** Whether two say the same, also where one of them or both are stored whole. */
export function isSameResult(one: Result, other: Result): boolean {
  return one.outputJson === other.outputJson || digestOf(one) === digestOf(other);
}

function digestOf({ storedReference, outputJson }: Result): string {
  return digestOfReference(storedReference) ?? hash("sha256", outputJson, "hex");
}

function shortenedJson({ outputJson, isError }: Result, beginningBytes: number, kept: Rest): string {
  const whole = Buffer.from(outputJson);
  const beginning = charactersUpTo(whole, beginningBytes);
  const part = { offset: beginning.length, limit: Math.min(beginningBytes, maxPartBytes) };
  const { storedReference: reference, unkept } = kept;
  const rest =
    reference === undefined ? `is not kept: ${unkept}` : `read_result(${JSON.stringify({ reference, ...part })})`;
  const where = reference === undefined ? "; the rest" : `, stored as ${reference}; the rest:`;
  if (isError) return JSON.stringify({ error: `${beginning}… (${whole.length} bytes${where} ${rest})` });
  const stored = reference !== undefined && { storedReference: reference };
  return JSON.stringify({ truncated: true, bytes: whole.length, ...stored, beginning: beginning.toString(), rest });
}
