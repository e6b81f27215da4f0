import { errors } from "@nats-io/transport-node";
import { delay } from "../../time/delay.ts";
import { openEnding } from "../../time/ending.ts";
import { unlessAborted } from "../../time/unless-aborted.ts";
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
  [Symbol.dispose](): void;
}

const againMs = 25;

export function openPinging(bus: Bus, kind: string, silenceMs: number): Pinging {
  let returnedAt = Number.NEGATIVE_INFINITY;
  const end = bus.link.onReturn(() => {
    returnedAt = performance.now();
  });

  /** Interest is still spreading: owners are reconnecting, or the nodes of a cluster have not told each other yet. */
  const isInterestSettling = (created: Date) =>
    performance.now() - returnedAt < silenceMs ||
    (bus.connection.info?.cluster !== undefined && Math.abs(Date.now() - created.getTime()) < silenceMs);

  return {
    async ping(key, entry, signal) {
      const subject = ownerSubject(kind, key, entry.revision);
      for (;;) {
        await bus.link.whenUp(signal);
        const answer = await askUntilSilent(bus, subject, silenceMs, signal);
        if (answer === "silent") {
          if (await answersPromptly(bus, silenceMs)) return "gone";
        } else if (answer === "nobody") {
          if (!isInterestSettling(entry.created)) return "gone";
          await delay(againMs, signal);
        } else if (answer !== "lost") return answer;
      }
    },
    [Symbol.dispose]: end,
  };
}

type Answer = OwnerState | "silent" | "nobody" | "lost";

const asksInSilence = 4;

/** Asks several times in the time of silence: an owner that dies with a ping in its hands is found by the next one. */
async function askUntilSilent(bus: Bus, subject: string, silenceMs: number, signal?: AbortSignal): Promise<Answer> {
  for (let ask = 0; ask < asksInSilence; ask++) {
    const answer = await askOnce(bus, subject, silenceMs / asksInSilence, signal);
    if (answer !== "silent") return answer;
  }
  return "silent";
}

async function askOnce(bus: Bus, subject: string, timeoutMs: number, signal?: AbortSignal): Promise<Answer> {
  const { down } = bus.link;
  using ending = openEnding(signal, down);
  try {
    const answer = await unlessAborted(bus.connection.request(subject, "ping", { timeout: timeoutMs }), ending.signal);
    return answer.string() as OwnerState;
  } catch (error) {
    signal?.throwIfAborted();
    if (down.aborted) return "lost";
    if (error instanceof errors.TimeoutError) return "silent";
    if (error instanceof errors.NoRespondersError) return "nobody";
    if (error instanceof errors.RequestError && error.isNoResponders()) return "nobody";
    throw error;
  }
}

/** Whether the silence was the owner's and not the server's. */
async function answersPromptly(bus: Bus, silenceMs: number): Promise<boolean> {
  const askedAt = performance.now();
  try {
    await unlessAborted(bus.connection.flush(), bus.link.down);
  } catch {
    return false; // the server was lost: the loop waits for it
  }
  return performance.now() - askedAt < silenceMs / 2;
}
