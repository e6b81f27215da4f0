import { answersPromptly, askUntilCertain } from "../ask.ts";
import type { Bus } from "../bus.ts";
import type { OwnerEntry } from "./entry.ts";
import { ownerSubject } from "./names.ts";

export type OwnerState = "opening" | "open" | "closing";

export interface Pinging {
  /** Asks the owner of an entry how it stands; `gone` only when its silence is certain (see O5 and O6). */
  ping(
    key: string,
    entry: Pick<OwnerEntry, "revision" | "created">,
    signal?: AbortSignal,
  ): Promise<OwnerState | "gone">;
}

const ATTEMPTS = 4;

export function createPinging(bus: Bus, kind: string, silenceMs: number): Pinging {
  /** Interest is still spreading: owners are reconnecting, or the nodes of a cluster have not told each other yet. */
  const isInterestSettling = (created: Date) =>
    performance.now() - bus.link.returnedAtMs < silenceMs ||
    (bus.connection.info?.cluster !== undefined && Math.abs(Date.now() - created.getTime()) < silenceMs);

  return {
    async ping(key, entry, signal) {
      const answer = await askUntilCertain(bus, {
        subject: ownerSubject(kind, key, entry.revision),
        text: "ping",
        silenceMs,
        attempts: ATTEMPTS,
        signal,
        isCertain: (kind) =>
          kind === "silent" ? answersPromptly(bus, silenceMs / 2) : !isInterestSettling(entry.created),
      });
      return answer === undefined ? "gone" : (answer.string() as OwnerState);
    },
  };
}
