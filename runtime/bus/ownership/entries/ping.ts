import type { Bus } from "../../bus.ts";
import { askWhetherAlive } from "../../liveness.ts";
import type { OwnerEntry } from "./entry.ts";
import { ownerSubject } from "./names.ts";

export type OwnerState = "opening" | "open" | "closing";

export interface Pinging {
  /** Asks the owner of an entry how it stands; `gone` only when that is certain (`../../liveness.ts`). */
  ping(
    key: string,
    entry: Pick<OwnerEntry, "revision" | "created">,
    signal?: AbortSignal,
  ): Promise<OwnerState | "gone">;
}

export function createPinging(bus: Bus, kind: string, silenceMs: number | undefined): Pinging {
  return {
    async ping(key, { revision, created }, signal) {
      const subject = ownerSubject(kind, key, revision);
      const options = { silenceMs, signal, subscribedAtMs: created.getTime() };
      const owner = await askWhetherAlive(bus, { subject, text: "ping", ...options });
      return owner.kind === "alive" ? (owner.message.string() as OwnerState) : "gone";
    },
  };
}
