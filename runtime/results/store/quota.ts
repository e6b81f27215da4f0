import type { Bus } from "../../bus/bus.ts";
import { openQuota } from "../../bus/quota/quota.ts";
import { bytesByHolder, rememberingHolders } from "../../bus/quota/usage.ts";
import { createResultRemoval } from "./removal.ts";
import { createResultStore, type ResultStore, store } from "./store.ts";

export interface ResultHolders {
  /** Who opened a session; undefined for one that there is not, or not any more. */
  readonly findPrincipal: (sessionId: string) => Promise<string | undefined>;
  readonly onFault: (fault: string) => void;
  readonly everyMs?: number;
}

/** Results, of which none is kept for sessions of a principal that is over its quota. */
export function openResultsWithQuota(
  bus: Bus,
  { findPrincipal, ...options }: ResultHolders,
): ResultStore & AsyncDisposable {
  const results = createResultStore(bus);
  const holderOf = rememberingHolders(async (sessionId) => (await findPrincipal(sessionId)) ?? "");
  const quota = openQuota(bus, {
    stream: `OBJ_${store}`,
    holds: "results",
    remedy: "wait until old sessions go, or have an operator set TOOLBUS_RUN_RETENTION lower",
    measure: () => bytesByHolder(sizesBySession(bus), ({ sessionId }) => holderOf(sessionId)),
    ...options,
  });
  return {
    ...results,
    async put(sessionId, whole) {
      quota.requireRoom(await holderOf(sessionId));
      return results.put(sessionId, whole);
    },
    [Symbol.asyncDispose]: () => quota[Symbol.asyncDispose](),
  };
}

/** Chunks stand under ids of their own: which session has them is told by the entries. */
async function* sizesBySession(bus: Bus) {
  for (const { sessionId, bytes } of await createResultRemoval(bus).list()) yield { sessionId, bytes };
}
