import { createHash } from "node:crypto";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";

const MOST = 10_000;
const known = new BoundedMap<string, string>(MOST);

/** A name of any form as one token of a subject, or as part of a consumer's name. */
export function tokenFrom(...names: readonly string[]): string {
  const text = names.length === 1 ? (names[0] ?? "") : JSON.stringify(names);
  const found = known.get(text);
  if (found !== undefined) return found;
  const token = createHash("sha256").update(text).digest("hex").slice(0, 32);
  known.set(text, token);
  return token;
}
