import { createHash } from "node:crypto";

/** A name of any form as one token of a subject, or as part of a consumer's name. */
export function tokenFrom(...names: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(names)).digest("hex").slice(0, 32);
}
