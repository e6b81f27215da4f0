import type { Bus } from "#runtime/bus/bus.ts";
import { createResultStore } from "#runtime/results/store/store.ts";
import type { ReadStored } from "../../model/prompt/stored-images.ts";

/** Reads what is stored of results. */
export function createStoredReader(bus: Bus): ReadStored {
  const store = createResultStore(bus);
  return async (reference, { maxBytes, signal = new AbortController().signal }) => {
    const stored = await store.find(reference);
    if (stored === undefined || stored.bytes > maxBytes) return undefined;
    return Buffer.concat(await Array.fromAsync(store.read(stored, 0, signal)));
  };
}
