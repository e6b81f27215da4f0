import type { ResultStore } from "#runtime/results/store/store.ts";
import type { ReadStored } from "../../model/prompt/stored-images.ts";

/** Reads what is stored of results. */
export function createStoredReader(store: Pick<ResultStore, "find" | "read">): ReadStored {
  return async (reference, { maxBytes, signal = new AbortController().signal }) => {
    const stored = await store.find(reference);
    if (stored === undefined || stored.bytes > maxBytes) return undefined;
    return Buffer.concat(await Array.fromAsync(store.read(stored, 0, signal)));
  };
}
