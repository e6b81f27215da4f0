import { BoundedMap } from "../../../collections/maps/bounded-map.ts";
import { delay } from "../../../time/delay.ts";
import type { Bus } from "../../bus.ts";
import { type OwnerEntry, ownerEntries } from "./entry.ts";
import { tokenFromKey } from "./names.ts";
import type { Ping } from "./ping.ts";

type Found = { kind: "answers"; instance: string } | { kind: "gone"; entry: OwnerEntry } | { kind: "nobody" };

/** Finds the owner of a key, as it answers at this moment. */
export type Find = (key: string, signal?: AbortSignal) => Promise<Found>;

const rememberedEntries = 10_000;
const closingMs = 10;

/** Entries that answered are remembered: their revision in the subject of the ping is the proof that they still stand. */
export function createFind(bus: Bus, kind: string, ping: Ping): Find {
  const entries = ownerEntries(bus, kind);
  const remembered = new BoundedMap<string, OwnerEntry>(rememberedEntries);

  return async (key, signal) => {
    for (;;) {
      const known = remembered.get(key);
      const entry = known ?? (await entries.read(tokenFromKey(key), signal));
      if (entry === undefined) return { kind: "nobody" };
      const state = await ping(key, entry, signal);
      if (state === "open" || state === "opening") {
        remembered.set(key, entry);
        return { kind: "answers", instance: entry.value.instance };
      }
      remembered.delete(key);
      if (state === "gone" && known === undefined) return { kind: "gone", entry };
      if (state === "closing") await delay(closingMs, signal);
    }
  };
}
