import { isObject } from "#runtime/schema/json-object.ts";
import { iconsFrom } from "./icons.ts";

type Json = Record<string, unknown>;

const MOST_COMPLETED = 100;

/** The objects of a list; what is none is left out. */
export function recordsIn(list: unknown): Json[] {
  return Array.isArray(list) ? list.filter(isObject) : [];
}

export function textIn(record: Json, key: string): string {
  const value = record[key];
  return typeof value === "string" ? value : "";
}

/** What resources, templates and prompts have in common. */
export function namedFrom(record: Json) {
  return {
    name: textIn(record, "name"),
    title: textIn(record, "title"),
    description: textIn(record, "description"),
    mimeType: textIn(record, "mimeType"),
    icons: iconsFrom(record.icons),
  };
}

export function promptFrom(record: Json) {
  const { mimeType: _, ...named } = namedFrom(record);
  const parameters = recordsIn(record.arguments).map((one) => ({
    name: textIn(one, "name"),
    title: textIn(one, "title"),
    description: textIn(one, "description"),
    required: one.required === true,
  }));
  return { ...named, arguments: parameters };
}

export function blobOf(record: Json) {
  const at = { uri: textIn(record, "uri"), mimeType: textIn(record, "mimeType") };
  if (typeof record.blob !== "string")
    return { ...at, content: { case: "text" as const, value: textIn(record, "text") } };
  return { ...at, content: { case: "blob" as const, value: new Uint8Array(Buffer.from(record.blob, "base64")) } };
}

export function completionFrom(completion: unknown) {
  const { values, total, hasMore } = isObject(completion) ? completion : {};
  const texts = Array.isArray(values) ? values.filter((value) => typeof value === "string") : [];
  const isCount = typeof total === "number" && Number.isInteger(total) && total >= 0 && total < 2 ** 32;
  return { values: texts.slice(0, MOST_COMPLETED), ...(isCount && { total }), hasMore: hasMore === true };
}

/** Cursors are kept, to know one that comes again. */
const MAX_CURSOR = 65_536;

type Ask<P> = (params: { cursor?: string }) => Promise<P>;

/** The pages of a list; `onCut` hears why it ends before the last one: a cursor that comes again, or more pages than are read. */
export async function* pagesOf<P extends Json>(ask: Ask<P>, mostPages: number, onCut = (_why: string) => {}) {
  const seen = new Set<string>();
  for (let [page, cursor] = [0, ""]; page < mostPages; page += 1) {
    const listed: P = await ask(cursor === "" ? {} : { cursor });
    yield listed;
    cursor = textIn(listed, "nextCursor");
    if (cursor === "") return;
    const fault = seen.has(cursor) ? "came twice" : `is longer than ${MAX_CURSOR}`;
    if (seen.has(cursor) || cursor.length > MAX_CURSOR) return onCut(`a cursor ${fault}: the list ends there`);
    seen.add(cursor);
  }
  onCut(`the list has more than ${mostPages} pages: the rest is left out`);
}

/** What is said beyond that is no promise that anybody keeps. */
const MOST_TTL_MS = 24 * 60 * 60 * 1_000;

/** A server of 2026-07-28 says for how long its answer may be kept; what is no time means not at all. */
export function ttlMsIn({ ttlMs }: Record<string, unknown>): number | undefined {
  if (ttlMs === undefined) return undefined;
  return typeof ttlMs === "number" && ttlMs >= 0 ? Math.min(ttlMs, MOST_TTL_MS) : 0;
}
