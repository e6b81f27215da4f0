import type { Bus } from "../../bus/bus.ts";
import { openCrowding } from "../../bus/room/crowding.ts";
import { bytesByHolder, rememberingHolders } from "../../bus/room/shares.ts";
import { createResultRemoval } from "./removal.ts";
import { createResultStore, type ResultStore, store } from "./store.ts";

export interface ResultHolders {
  /** Who opened a session; undefined for one that there is not, or not any more. */
  readonly findPrincipal: (sessionId: string) => Promise<string | undefined>;
  readonly onFault: (fault: string) => void;
  readonly everyMs?: number;
}

/** Results, of which none is kept for sessions of a principal that has its share of all while room is short. */
export function openSharedResults(
  bus: Bus,
  { findPrincipal, ...options }: ResultHolders,
): ResultStore & AsyncDisposable {
  const results = createResultStore(bus);
  const holderOf = rememberingHolders(async (sessionId) => (await findPrincipal(sessionId)) ?? "");
  const crowding = openCrowding(bus, {
    stream: `OBJ_${store}`,
    holds: "results",
    remedy: "wait until old sessions go, or have an operator set TOOLBUS_RUN_RETENTION lower",
    measure: () => bytesByHolder(sizesBySession(bus), ({ sessionId }) => holderOf(sessionId)),
    ...options,
  });
  return {
    ...results,
    async put(sessionId, whole) {
      crowding.requireRoom(await holderOf(sessionId));
      return results.put(sessionId, whole);
    },
    [Symbol.asyncDispose]: () => crowding[Symbol.asyncDispose](),
  };
}

/** Chunks stand under ids of their own: which session has them is told by the entries. */
async function* sizesBySession(bus: Bus) {
  for (const { sessionId, bytes } of await createResultRemoval(bus).list()) yield { sessionId, bytes };
}
