import { openSlices } from "../handling/messages/slices.ts";

export interface WantedKeys<E> {
  readonly where: (entry: E) => boolean;
  /** The last key of the page before. */
  readonly after: string;
  readonly limit: number;
}

/** It takes longer to ask for a slice of time than to look at one entry. */
const ENTRIES_A_STEP = 256;

/** The first keys behind a place that are wanted, in their order. SEC-5: looks through many in slices, and holds few. */
export async function firstKeys<E>(
  entries: ReadonlyMap<string, E>,
  { where, after, limit }: WantedKeys<E>,
): Promise<string[]> {
  const nextStep = openSlices();
  const found = new Set<string>(); // what leaves and comes again meanwhile is seen twice
  let looked = 0;
  let last: string | undefined;
  for (const [key, entry] of entries) {
    if (looked++ % ENTRIES_A_STEP === 0) await nextStep();
    if (key <= after || (last !== undefined && key >= last) || !where(entry)) continue;
    found.add(key);
    if (found.size < 2 * limit) continue;
    const behind = [...found].sort().slice(limit);
    for (const one of behind) found.delete(one);
    last = behind[0];
  }
  return [...found].sort().slice(0, limit);
}
