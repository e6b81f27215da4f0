import { openPeriodic } from "../../../lifecycle/background.ts";
import { unlessAborted } from "../../../time/unless-aborted.ts";
import type { Bus } from "../../bus.ts";
import { isNobody } from "../../liveness.ts";

export interface Instances {
  list(signal: AbortSignal): Promise<string[]>;
  /** Those that were found so far, without asking. */
  known(): string[];
  /** It does not answer: it is listed when it is found again. */
  forget(instance: string): void;
}

const LOOK_EVERY_MS = 5_000;
const ANSWERS_MS = 1_000;

/**
 * The instances of a service, as `nats micro ping` finds them. One that is busy for a moment answers late: it is known from
 * before, and stays so until a question to itself has failed.
 */
export async function openInstances(
  bus: Bus,
  service: string,
  onError: (error: unknown) => void,
): Promise<Instances & AsyncDisposable> {
  const known = new Set<string>();
  const ask = async (signal: AbortSignal | undefined, options: { strategy: "stall" | "timer"; stall?: number }) => {
    const asked = bus.connection.requestMany(`$SRV.PING.${service}`, "", { maxWait: ANSWERS_MS, ...options });
    for await (const answer of await unlessAborted(asked, signal)) {
      signal?.throwIfAborted();
      const { metadata } = answer.json<{ metadata?: { instance?: unknown } }>();
      if (typeof metadata?.instance === "string") known.add(metadata.instance);
    }
  };
  /** The first of them asks before it listens itself. */
  const look: typeof ask = (signal, options) =>
    ask(signal, options).catch((error: unknown) => {
      if (!isNobody(error)) throw error;
    });
  const lookWell = (signal?: AbortSignal) => look(signal, { strategy: "timer" });
  const first = lookWell().catch(onError);
  const looking = openPeriodic({ everyMs: LOOK_EVERY_MS, work: lookWell, onError });
  return {
    async list(signal) {
      await unlessAborted(Promise.all([first, look(signal, { strategy: "stall", stall: 100 })]), signal);
      return [...known];
    },
    known: () => [...known],
    forget: (instance) => void known.delete(instance),
    [Symbol.asyncDispose]: () => looking[Symbol.asyncDispose](),
  };
}
