import type { Bus } from "../../bus.ts";
import { askWhetherAlive } from "../../liveness.ts";
import type { OwnerEntry } from "./entry.ts";
import { ownerSubject } from "./names.ts";

export type OwnerState = "opening" | "open" | "closing";

/** Asks the owner of an entry how it stands; `gone` only when that is certain (`../../liveness.ts`). */
export type Ping = (key: string, entry: OwnerEntry, signal?: AbortSignal) => Promise<OwnerState | "gone">;

export function createPing(bus: Bus, kind: string, silenceMs: number | undefined): Ping {
  return async (key, { revision, writtenAt }, signal) => {
    const subject = ownerSubject(kind, key, revision);
    const options = { silenceMs, signal, subscribedAtMs: writtenAt.getTime() };
    const owner = await askWhetherAlive(bus, { subject, text: "ping", ...options });
    return owner.kind === "alive" ? (owner.message.string() as OwnerState) : "gone";
  };
}
