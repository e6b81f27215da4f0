import { hash } from "node:crypto";

/** A name of any form as one token of a subject, or as part of a consumer's name. */
export function tokenFrom(...names: readonly string[]): string {
  const text = names.length === 1 ? (names[0] ?? "") : JSON.stringify(names);
  return hash("sha256", text, "hex").slice(0, 32);
}
