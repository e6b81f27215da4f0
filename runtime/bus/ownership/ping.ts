import { delay } from "../../time/delay.ts";
import { answersPromptly, askOnce } from "../ask.ts";
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

const againMs = 25;

export function createPinging(bus: Bus, kind: string, silenceMs: number): Pinging {
  /** Interest is still spreading: owners are reconnecting, or the nodes of a cluster have not told each other yet. */
  const isInterestSettling = (created: Date) =>
    performance.now() - bus.link.returnedAtMs < silenceMs ||
    (bus.connection.info?.cluster !== undefined && Math.abs(Date.now() - created.getTime()) < silenceMs);

  return {
    async ping(key, entry, signal) {
      const subject = ownerSubject(kind, key, entry.revision);
      for (;;) {
        await bus.link.whenUp(signal);
        const answer = await askUntilSilent(bus, subject, silenceMs, signal);
        if (answer === "silent") {
          if (await answersPromptly(bus, silenceMs / 2)) return "gone";
        } else if (answer === "nobody") {
          if (!isInterestSettling(entry.created)) return "gone";
          await delay(againMs, signal);
        } else if (answer !== "lost") return answer;
      }
    },
  };
}

type Answer = OwnerState | "silent" | "nobody" | "lost";

const asksInSilence = 4;

/** Asks several times in the time of silence: an owner that dies with a ping in its hands is found by the next one. */
async function askUntilSilent(bus: Bus, subject: string, silenceMs: number, signal?: AbortSignal): Promise<Answer> {
  for (let ask = 0; ask < asksInSilence; ask++) {
    const asked = await askOnce(bus, { subject, text: "ping", timeoutMs: silenceMs / asksInSilence, signal });
    if (asked.kind === "answered") return asked.message.string() as OwnerState;
    if (asked.kind !== "silent") return asked.kind;
  }
  return "silent";
}
