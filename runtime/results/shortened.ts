import { charactersUpTo } from "./utf8.ts";

/** What is told of a result whose whole is stored, or could not be: its beginning, and how the rest is read. */
export type Shortened = {
  readonly outputJson: string;
  readonly isError: boolean;
  readonly beginningBytes: number;
} & ({ readonly storedReference: string } | { readonly unkept: string });

/** The most that `read_result` gives at once, in bytes. */
export const maxPartBytes = 32 * 1_024;

export function shortenedJson({ outputJson, isError, beginningBytes, ...kept }: Shortened): string {
  const whole = Buffer.from(outputJson);
  const beginning = charactersUpTo(whole, beginningBytes);
  if ("unkept" in kept) {
    const rest = `is not kept: ${kept.unkept}`;
    return isError
      ? JSON.stringify({ error: `${beginning}… (${whole.length} bytes; the rest ${rest})` })
      : JSON.stringify({ truncated: true, bytes: whole.length, beginning: beginning.toString(), rest });
  }
  const { storedReference } = kept;
  const limit = Math.min(beginningBytes, maxPartBytes);
  const rest = `read_result(${JSON.stringify({ reference: storedReference, offset: beginning.length, limit })})`;
  if (isError) {
    const text = `${beginning}… (${whole.length} bytes, stored as ${storedReference}; the rest: ${rest})`;
    return JSON.stringify({ error: text });
  }
  const told = { truncated: true, bytes: whole.length, storedReference, beginning: beginning.toString(), rest };
  return JSON.stringify(told);
}
